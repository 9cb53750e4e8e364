// Package transport carries hashicorp/raft's messages between nodes: of all groups of a process, over one session a
// node pair and direction.
//
// A [Transport] listens for its peers and keeps a session to each of them; [Transport.Group] gives the raft.Transport of
// one group. The raft address of a member is the id of its node: where a node can be reached is the transport's business
// and may change without a word to the groups. Requests name the member they are for by its raft id too: a node may have
// one copy after the other, and none answers for another.
//
// # What is where
//
//   - Nodes: transport.go, peer.go (one other node), handshake.go, session.go (this node asks), served.go (this node is asked),
//     outbox.go (what waits to be written), moved.go, doubles.go and generation.go (who is refused or found elsewhere).
//   - Groups: group.go is raft's Transport; send.go, pipeline.go, snapshot.go, heartbeat.go, departures.go and elections.go send its requests,
//     inbound.go, settled.go, candidate.go and clock.go take them in; commits.go tells followers what is committed, rest.go ends pipelines.
//   - Beside raft: call.go (questions between nodes), stranger.go (of a node that has not joined yet), observe.go, failover.go and
//     silence.go.
//
// # On the wire
//
// A session is two connections that the sender of requests opens: one for control (heartbeats, votes), one for bulk
// (entries, snapshots), so that what is small never waits behind what is large. Answers come back on the connection of
// the request. Both carry frames, little endian:
//
//	0 length of the body u32 · 4 kind u8 · 5 flags u8 · 6 zero u16 · 8 sequence number of the request u64 · 16 body
//
// The first frame is a hello with the cluster's id, the node's and the newest version that it speaks; who is of another cluster
// is refused. The welcome says which version both speak. wire.go draws the bodies. No frame is larger than about 1 MiB. A larger
// request, which a single large entry makes, is sent in several frames, between which those of other groups go out; requests of
// one group stay in order.
//
// Entries travel as the leader's journal has them on disk: written from its pages, received into memory that is used
// again, handed to the follower's log in raft.Log.Extensions.
//
// # What is done to raft's requests
//
//   - Heartbeats of all groups to a peer wait for each other up to Options.Window and go as one frame. They are answered by
//     the goroutine that reads them.
//   - A follower of a group to which nothing was appended for Options.Timeout gets single requests instead of a pipeline.
//   - A follower that has entries which it does not know to be committed is sent, once, the empty AppendEntries that raft
//     would send after CommitTimeout.
//   - An AppendEntries without entries that says what the follower acknowledged last (term, previous entry, commit
//     index) goes as a heartbeat. It makes the whole way: raft takes the answer for a proof of leadership. The follower's
//     instance of the group is part of the comparison, since one that was opened anew no longer knows the commit index.
//   - An AppendEntries of more than 1 MiB is split into several complete ones, never cut short, with one future.
//   - Every wait has an end: for room in the pipeline, for a write, for the answer. A pipeline that lost a request ends
//     with the next call; the request is not shown to raft as one that failed, since raft 1.8.0 would take even that for
//     contact with the follower and lengthen the leader's lease.
//   - A request with entries, or a snapshot, to a node that is down, or has not opened the group yet, does not fail but waits while
//     this member leads, and goes as soon as it can (hold.go): raft would wait up to 10 s after many failures. Entries are not kept
//     meanwhile; the request goes without, and raft sends them next.
//   - An entry whose frame is not in the journal is not sent: the entry before the log's front looks to raft as if it were.
//
// # Dead nodes
//
// When a peer's connections have ended and it refuses new ones, its process is gone. When nothing has come from it for
// Options.Silence, on whatever connection, its machine or the network is; unless this process was late itself, which looks again
// then. The groups that it led get raft's message to stand for election now, at once where this node is the first of the
// group's living voters by id, later where it is not. That is always safe, and takes a tenth of a second instead of the seconds
// of raft's timers. A member whose timer was faster, and whom the others refused as they did not know of the death yet, is a
// candidate that does not hear the message: it is made a follower first.
//
// # Bounds
//
// What is received and not yet answered is bounded for a group and for the transport; a request beyond it is answered as
// busy, so that no group waits for another one's disk. A length field makes nobody allocate more than the kind of frame
// allows and the bound has room for. A peer that breaks the protocol loses its connection.
//
// # Locks
//
// Transport.mu, peer.mu, Group.mu, session.mu, outbox.mu: none is held during I/O, a send on a channel that can block, or
// a call to a function of raft; where two are held, they are taken in this order.
package transport
