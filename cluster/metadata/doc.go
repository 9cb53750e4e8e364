// Package metadata is the state machine of a cluster's metadata: streams and where their journals are, nodes, the offsets
// that groups committed, transactions, producer ids, users and ACLs.
//
// A [State] changes only by [Command]s that come out of the log of the metadata's raft group, an entry with several at a
// time, so that every node, and every later start, has the same one. What differs from node to node (time, random ids) is
// decided by the node that proposes a command and stands in it: a State reads no clock and no disk. Proposing, forwarding and placing
// are the cluster's.
package metadata
