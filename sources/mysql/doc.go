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
//	                     +- parked: the tables that are left out, part of the position
//	                     +- snapshot: chunks read through a second connection
//
// # Promises and where they are kept
//
//  1. Progress is recorded at the end of a transaction only; a transaction cut in the
//     middle is read again from its start, with the same Record.Position values
//     (reader.commit).
//  2. A row is decoded with the table's definition valid at its position, or not at
//     all: each table map is compared with the definition, and what does not agree is
//     resolved or parks the table (registry.bind).
//  3. A row of the snapshot is emitted exactly as it stood at the stream's position at
//     that moment (snapshot.go says why).
//  4. A value is the same whichever of the two phases read it, and equals what SELECT
//     shows through a connection in UTC (value.go and select.go share the encoders).
//  5. What can't be decoded parks its table, with the code and fix of a
//     *pipeline.StopError; what is missing from the log stops the source. Nothing is
//     skipped in silence, and a table that comes back has no gap (parked.go).
//
// # What the server has to grant
//
// The account needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT on the captured
// tables. The server must log rows (binlog_format=ROW) and all of each row
// (binlog_row_image=FULL, no binlog_row_value_options). binlog_row_metadata=FULL is
// not needed, but lets the source go on where a statement that it can't follow has
// changed a table and the server's present definition is newer still.
//
// The snapshot takes no lock on MySQL with GTIDs and on MariaDB. On MySQL without
// GTIDs each chunk is read FOR SHARE, which writers of the same rows may wait for, as
// long as that one SELECT takes.
package mysql
