// Package membership decides who belongs to a consumer group and who consumes
// what: the coordinator's half of Kafka's classic group protocol (JoinGroup,
// SyncGroup, Heartbeat, LeaveGroup), with static members (KIP-345) and what
// cooperative assignors need (a member may rejoin at any time).
//
// A group goes
//
//	Empty -> PreparingRebalance -> CompletingRebalance -> Stable
//	              ^ members join       ^ the leader assigns   |
//	              +-------- a member comes, goes or changes --+
//
// and back to Empty when its last member is gone. Before a generation gets its
// assignment it is kept, by whoever made the group: the next coordinator goes on
// with it, and members notice nothing but that somebody else answers. What has
// changed since is lost with the coordinator, and found out by heartbeats: those
// who are gone send none, and others are told that they are unknown and join again.
// The offsets that a group commits are the metadata's, not this package's.
//
// A Group is safe for concurrent use. Its lock is held only for changes of
// state, never while a member waits or while anything is written.
package membership
