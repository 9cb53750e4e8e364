//go:build race

package kafka_test

// shadow is how many times as much memory a process takes whose accesses the race detector follows.
const shadow = 10
