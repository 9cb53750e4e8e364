// Package sourcetest is the suite that every source must pass, and the journal it
// is run against: an Emitter in memory that keeps what the real one keeps, loses
// what a crash loses, and fails when told to.
package sourcetest
