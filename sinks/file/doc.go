// Package file is the sink that writes records into files, one JSON text a line, each record once.
//
// Files appear whole. What is being written lies in a hidden folder beside the files, .daybook-PIPELINE-SINK below the
// folder that the path begins with, together with a manifest: the sink's cursor, and the files that became visible
// with it. A file that is visible never changes again; what comes later goes into another one, with the next number.
//
// # A flush
//
// All files that were begun since the last flush are closed together, at a place that the deliver loop chooses when
// Due says so:
//
//  1. What is still in memory is compressed and written to the parts; each part is synced and closed.
//  2. The folder of the parts is synced.
//  3. The manifest is replaced: written beside, synced, renamed, its folder synced. It names the checkpoint and, for
//     each part, the name it will have. This rename is the commit: before it the records are not in the files, after
//     it they are, whatever happens.
//  4. The folders of the new files are made, and those above them synced.
//  5. Each part is renamed to its name, and the folder synced.
//
// # Recovery
//
// Resume does the following before the first Write:
//
//  1. It locks the hidden folder.
//  2. It reads the manifest and checks version, checksum, pipeline, streams and epoch. Where there is none, nothing was
//     ever committed.
//  3. For each file the manifest names whose part still lies there it does steps 4 and 5 of the flush. A part that is
//     gone has been renamed: its file is visible, or whoever reads the files has taken it away. A file that is there
//     beside its part is compared with the manifest: if it is the same, the part is removed (a file system without
//     journal can leave both), else it is somebody's, and the sink stops.
//  4. It removes parts that the manifest does not name: leftovers of a run that did not get to step 3.
//
// The disk is expected to keep what was synced, and to leave a file under its old or its new name, not under neither,
// when the power fails in the middle of a rename. Part, manifest and file must lie on one file system.
//
// # Same input, same files
//
// Where a file ends depends on the records and their append stamps, not on the clock, on memory or on how often the
// process was started; so do the bytes: compression works on pieces that end at a fixed number of bytes. The number in a
// file's name counts the flushes that had files.
//
// # Bounds
//
// At most 64 parts are open at a time and 64 MiB wait in memory, however many files a flush has; beyond 1,000 files
// the sink asks for a flush. The manifest names only the files of the last flush, so it does not grow with time.
package file
