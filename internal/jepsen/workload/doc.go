// Package workload is Kafka clients that use a journal in all ways the checker knows rules for, and take down what
// happens: producers, transactions, readers, members of a group, committers of offsets, makers of streams.
//
// A session is one client. It does one thing after the other; when it does not know how something ended it gives up, as
// a process that crashed, and another session takes its place. What it began may still happen.
package workload
