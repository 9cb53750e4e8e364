package pipeline

// Names of the headers that Daybook puts on the records it appends. Readers of
// the journal, ours and other Kafka clients, may rely on them.
const (
	HeaderStamp    = "daybook.stamp"     // append stamp J, decimal microseconds
	HeaderSource   = "daybook.source"    // name of the source in its pipeline
	HeaderPosition = "daybook.position"  // the source's own id of the record
	HeaderTable    = "daybook.table"     // "database.table" of a change
	HeaderTime     = "daybook.time"      // event time in µs, where it is no whole millisecond
	HeaderTimeFrom = "daybook.time_from" // where the event time is from, if not the record itself
)

// Header is a name and a value beside a record.
type Header struct {
	Key   string
	Value []byte
}

// Record is one entry of a stream. (Stream, Partition, Offset) never changes
// once the journal has assigned it.
//
// A Record is handed on by value; the bytes it points to are shared, so whoever
// passes a Record on must not write to Key, Value or a header's value again.
type Record struct {
	Stream    string
	Partition int32
	Offset    int64

	// Key is nil where records of the stream have no identity.
	Key []byte
	// Value is nil for a tombstone.
	Value []byte
	// Headers holds what is not kept in a field of its own below.
	Headers []Header

	// Time is the event time, microseconds since 1970 UTC.
	Time int64
	// Stamp is the append stamp J, microseconds since 1970 UTC. It is zero until
	// the emitter has accepted the record.
	Stamp int64

	// Source names the source that emitted the record; the emitter fills it in.
	Source string
	// Position identifies the record within its source: a source that reads the
	// same change again after a restart gives it the same Position. The emitter
	// relies on it to append nothing twice.
	Position string
	// Table is "database.table" for a change of a database, else empty.
	Table string
}

// Version is the number by which sinks that hold state tell old from new:
// 11 bits of replay epoch, then 52 bits of append stamp.
func (r *Record) Version(epoch uint16) uint64 {
	return uint64(epoch)<<52 | uint64(r.Stamp)&(1<<52-1)
}

// MaxEpoch is the greatest replay epoch that Record.Version can carry.
const MaxEpoch = 1<<11 - 1
