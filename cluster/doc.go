// Package cluster turns journals into what a node serves: raft groups over their journals, the metadata that says which
// streams there are, and the transport between nodes.
//
// [Group] is one raft group on one journal: the raft log is the data, and [Group.Append] is the only way in. [FSMGroup]
// is an ordinary replicated state machine over the same log store; the metadata lives in one. Both run on unmodified
// hashicorp/raft. A standalone node's groups have one member, without timers to wait for; there is no second code path.
//
// The package knows storage and raft, and nothing of pipelines.
package cluster
