// Package load drives a journal that speaks the Kafka protocol, be it Daybook's or Apache Kafka's, and measures
// what that costs: it is the engine of `daybook bench` and of `make bench-journal`.
//
// A run produces, consumes or does both. There are two ways to do either:
//
//   - as an application does, through franz-go: records are batched and compressed while the run lasts;
//   - raw ([Options.Raw]): batches are compressed once, before the clock starts, and sent as prepared Produce
//     requests, pipelined; read batches are counted and their checksums compared, but not unpacked. The client
//     then costs next to nothing, so that a machine it shares with the server measures the server.
//
// # Promises
//
//   - Records are counted at the destination: by end offsets before and after, never by what was sent. A run whose
//     acknowledged records are not what the stream grew by fails.
//   - With [Options.Rate] the load is an open loop: a record is due at its time whether or not earlier ones were
//     answered, and its latency begins when it was due. A server that stalls is charged for all that waited.
//   - The same options make the same records on every run.
//   - With [Options.Verify] everything that was produced is read back and compared: each payload must be there as
//     often as it was acknowledged, and nothing else.
package load
