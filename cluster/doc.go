// Package cluster makes journals into what a node serves: which streams there are, which nodes keep their copies, who may do
// what, and who leads, moves, joins and leaves.
//
// A [Node] opens a raftgroup.Group for each journal that it has a copy of, and a raftgroup.Machine for the metadata, whose state
// is a metadata.State. A standalone node's groups have one member, without timers to wait for; there is no second code path. A
// node with [Observe] is in no group: it pulls copies.
//
// The package knows storage and raft, and nothing of pipelines.
package cluster
