// Package jepsen runs a journal on machines that break, with clients that remember everything, and holds what they
// remember against what was promised.
//
// A [Trial] is a cluster of real `daybook server` processes in a [lab.Lab], a [workload.Workload] of real Kafka clients,
// and a list of faults, drawn from a seed or written out. When the faults are over and the journal has recovered, all
// partitions are read whole, from leaders, followers and observers, and package check judges the history. Lots are drawn
// from the seed alone, so a trial that failed can be run again; processes and packets still take their own time.
//
// What goes wrong (draw.go says how often, and of how many nodes at once):
//
//   - The network: a node, a minority or all are cut off, from the others, from clients or from both; a node hears and is
//     not heard, or the reverse; two sides meet on a bridge, or each node sees only two others; packets are late, lost,
//     doubled and in the wrong order.
//   - Processes: SIGSTOP and SIGKILL of one, of a minority, of a majority, and of all.
//   - Machines: the power goes, of one or, where records are on stable storage, of a majority.
//   - Disks: full, stalled, slow, and dead.
//   - Clocks: the time of day of one node or of a majority jumps by up to twelve hours, stays wrong, or jumps to and fro
//     fifty times a second.
//   - What operators do meanwhile, by `daybook cluster`: journals move, have more or fewer replicas and other leaders,
//     load is rebalanced, nodes are taken out and join again as others.
//   - Observers have the same faults as nodes.
//
// It is for tests: `make test` runs a short one of each kind, `make nightly` twenty seeds of each, on servers that look for races. It needs
// Linux and root.
package jepsen
