// Package mysql is the source that reads the changes of MySQL and MariaDB tables:
// first a snapshot of the rows that are there, then the binary log, with no gap
// and no repeat between the two.
//
// # How it hangs together
//
// One goroutine, the one that runs Source.Run, does everything in order: it reads
// events from the dump connection, decodes them, takes chunks of the snapshot
// between two transactions and emits. Nothing here needs a lock except what
// Source.Report shows.
//
//	dump connection -> reader (transactions, table maps) -> rowCodec -> batch -> Emitter
//	                     |            |
//	                     |            +- registry: the tables as they were at this position
//	                     +- snapshot: chunks read through a second connection
//
// # Promises and where they are kept
//
//  1. Progress is recorded at the end of a transaction only; a transaction cut in the
//     middle is read again from its start, with the same Record.Position values
//     (reader.commit).
//  2. A row is decoded with the table's definition valid at its position, or not at
//     all: each table map is compared with the definition, and what does not agree is
//     resolved or stops the source (registry.bind).
//  3. A row of the snapshot is emitted exactly as it stood at the stream's position at
//     that moment (snapshot.go says why).
//  4. A value is the same whichever of the two phases read it, and equals what SELECT
//     shows through a connection in UTC (value.go and select.go share the encoders).
//  5. What can't be decoded, or is missing from the log, stops the source with a
//     *pipeline.StopError; nothing is skipped.
package mysql
