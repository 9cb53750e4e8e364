// Package pipeline moves records: from sources into the journal and from the
// journal to sinks. It knows the journal only as a Kafka client does, so that an
// embedded journal, a Daybook cluster and somebody's Kafka are one path.
//
// # What is where
//
// The seams that connectors are written against are Source and Emitter (source.go),
// Sink (sink.go), Record, Row and Delivery, StopError and RejectedError (errors.go),
// and for both sides Template and Where. File is the pipeline file.
//
// A Worker runs the sources and sinks of one file, each in its own goroutines:
//
//   - ingest runs a Source. It resumes from a checkpoint and the tail of the stream
//     behind it (ingest_resume.go), stamps what the source emits and leaves out what the
//     journal has (emitter.go, seen.go), follows it until it is durable (flight.go), and
//     keeps the checkpoint and the frontier (ingest_keep.go).
//   - deliver runs a Sink. It owns partitions (owner.go) and works on them in sessions:
//     read (reader.go), put in order (sequencer.go, ordered.go), decode and filter
//     (session_deliver.go), flush and move the cursor (session_flush.go).
//
// A Replay is a session with two ends and no cursor.
//
// # Promises
//
// A source: what Emit accepted is in the stream exactly once, in order within a
// partition, with stamps that rise; and nothing is appended in its name by a former run
// once a new one has read the tail.
//
// A sink: the cursor passes a record only when it is durable at the destination, or in
// the dead-letter or late stream, or was not wanted by `where`. A sink that is down
// holds its own cursor, reads nothing meanwhile, and slows nobody.
//
// # Locks
//
// emitter.mu before flight.mu. All else is either owned by one goroutine (a session and
// what it holds) or atomic.
package pipeline
