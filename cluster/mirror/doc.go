// Package mirror is the protocol by which an observer pulls copies of journals: from a node of the cluster, or from another
// observer. It knows nothing of raft, and of metadata only that there is some.
//
// The connection is made by package transport, which says hello and knows the other side's certificate. On it go
// messages, little endian:
//
//	0 length of the body u32 · 4 kind u8 · 5 status u8 · 6 zero u16 · 8 number of the request u64 · 16 body
//
// The observer asks, in any number at a time; each request is answered once, in any order:
//
//   - describe: what streams there are. It is answered when that is not what the observer has, and is not older.
//   - ends: how far each journal goes, of those for which that has changed since it was asked last.
//   - pull: the frames of a journal behind a raft entry, as they lie on disk. It is answered when there are some that are
//     committed. It names the place itself, so whoever is asked keeps nothing for the observer, and the next one can
//     be asked of somebody else.
//   - stretch: the bytes between two places of a journal, for a copy that has rotted.
//   - cancel: the pull with that number is not wanted any more.
//
// # Bounds
//
// A pull is the permission to send one answer, so there is never more than one on the way for each that was asked.
// Who is asked holds at most one answer a connection in hand: frames are looked up in turn, when the connection can take
// them, and go out from the journal's own pages. The observer reads no answer that its budget of memory has no room for;
// then the connection fills and who is asked waits. A pull that waits for data costs a parked goroutine.
package mirror
