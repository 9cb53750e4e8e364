// Package check says what in a history cannot be if the journal keeps its promises.
//
// The rules are those of Jepsen's checker for Kafka, and some that it leaves out. History looks at the log: what was
// acknowledged is read, once, at one offset, in order, by everybody. Offsets and Registers look at the order in real
// time, with porcupine: that a partition, a group's offsets and the set of streams behave as if they stood in one place.
//
// An operation with an unknown outcome is held against nobody, until somebody has seen its effect: then it has happened.
package check
