// Package vfs is the seam between Daybook and the disk: everything that must survive a crash is written through it.
//
// FS and File have exactly the operations a log needs, with the meaning the disk gives them: data is durable after
// [File.Sync] returned nil, a name is durable after [FS.SyncDir] of its directory returned nil, and nothing else is.
// Implementations keep to it: [OS] is the real thing; [Mem] holds files in memory and knows what a power cut could leave
// of them, which [Cuts] enumerates; [Faulty] wraps another FS and makes the n-th operation fail, stall or lie, writes
// short, or the disk full; [Watch] wraps one and knows what the disk has not answered.
//
// The package imports nothing else of Daybook. All types are safe for concurrent use; of one File, reads and writes
// of ranges that do not overlap may run concurrently.
package vfs
