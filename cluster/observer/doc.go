// Package observer is both sides of observing a cluster: an [Observer] keeps a copy of all its streams, which it pulls from
// nodes of the cluster or from other observers, and a [Source] is what those serve from. The protocol between them is
// package mirror's.
//
// For each upstream there is a link, which keeps it connected and hears what streams it has and how far its journals go. For
// each journal there is a puller, which copies from the link that it is assigned to. What of a copy rots is mended from any of
// them.
//
// Locks: Observer.mu, then puller.mu or link.mu, none of them during I/O.
package observer
