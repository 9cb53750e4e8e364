// Package cluster makes journals into what a node serves: which streams there are, which nodes keep their copies, who may do
// what, and who leads, moves, joins and leaves.
//
// A [Node] opens a raftgroup.Group for each journal that it has a copy of, and a raftgroup.Machine for the metadata, whose state
// is a metadata.State. A standalone node's groups have one member, without timers to wait for; there is no second code path. A
// node with [Observe] is in no group: it pulls copies.
//
// The package knows storage and raft, and nothing of pipelines. What of a node can do with little of the rest is in packages
// below it, which do not know a Node: moves, disk, observer, status, datadir, recovery.
//
// # What is where
//
//   - Records: [Partition] is what clients use (partition_*.go). Behind it is the table of journals (journals.go,
//     live_stream.go, journal_handle.go), which opens one at its first use; lookup.go answers questions by key, node_fresh.go
//     makes strong reads away from the leader.
//   - The metadata: proposer puts commands into its log (propose.go), node_forward.go carries them to whoever leads it,
//     node_coordinator.go says whether that is this node, node_meta.go opens it, also where it was damaged. What commands are
//     for: node_streams.go, node_offsets.go, node_transactions.go, node_markers.go, node_access.go, producer_ids.go.
//   - Being one of several: node_network.go and node_calls.go (the calls between nodes), node_join.go, node_greet.go,
//     node_certificate.go, node_reach.go, node_removed.go.
//   - Where journals lie: package moves decides. The leader of a group reconciles its members with that (node_reconcile.go), the
//     nodes their copies (node_replicas.go), and the leader of the metadata the cluster (node_controller.go).
//   - Who leads: node_leads.go and node_tell.go (what nodes tell each other), node_first.go and node_preferred.go (the first of a
//     journal's nodes leads it), node_admin.go (by hand).
//   - Looking after the disk: node_housekeeping.go (retention, deleted streams); package disk watches it, node_relieve.go makes
//     room; node_scrub.go, node_mend.go and node_copies.go (damage), node_dirs.go.
//   - Saying how it is: node_status.go has every node's node_report.go, of which package status makes the whole; node_health.go,
//     node_ready.go, node_figures.go.
//   - Observers: package observer pulls copies, and serves those who pull; observe.go opens a node as one.
package cluster
