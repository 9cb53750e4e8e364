// Package vfs is the seam between Daybook and the disk: everything that must survive a crash is written through it.
//
// FS and File have exactly the operations a log needs, with the meaning the disk gives them: data is durable after
// [File.Sync] returned nil, a name is durable after [FS.SyncDir] of its directory returned nil, and nothing else is.
// Three implementations keep to it: [OS] is the real thing; [Faulty] wraps another FS and makes the n-th operation
// fail, writes short, or the disk full; [Mem] holds files in memory and can be cloned as a power cut would leave it.
//
// The package imports nothing else of Daybook. All types are safe for concurrent use; of one File, reads and writes
// of ranges that do not overlap may run concurrently.
package vfs
