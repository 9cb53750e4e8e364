// Package jepsen runs a journal on machines that break, with clients that remember everything, and holds what they
// remember against what was promised.
//
// A [Trial] is a cluster of real `daybook server` processes in a [lab.Lab], a [workload.Workload] of real Kafka clients,
// and a list of faults, drawn from a seed or written out. When the faults are over and the journal has recovered, all
// partitions are read whole, and package check judges the history. Lots are drawn from the seed alone, so a trial that
// failed can be run again; processes and packets still take their own time.
//
// It is for tests: `make test` runs a short one, `make nightly` twenty seeds of each. It needs Linux and root.
package jepsen
