package pipeline

import (
	"context"
	"log/slog"

	"github.com/daybook-data/daybook/configs"
)

// Sink writes records to a destination. Its methods are called from one
// goroutine at a time.
type Sink interface {
	// Write accepts deliveries, in order, without waiting for the destination. It
	// keeps what it needs of them; an error stops the sink.
	Write(ctx context.Context, batch []Delivery) error

	// Flush returns nil once all that was written is durable and visible at the
	// destination. c is the checkpoint that this makes true; a sink that keeps its
	// cursor beside its data (Resumer) stores it in the same atomic step, others
	// ignore it.
	//
	// On an error nothing is forgotten. A *RejectedError names, once, the deliveries that
	// the destination refuses for good, with all others durable: the caller makes dead
	// letters of them and calls Flush again, with the same checkpoint and no Write
	// between. So a Resumer returns it before it stores c: its cursor must not pass what
	// is not yet safe. A *StopError ends the sink. After any other error (the
	// destination is down, slow, full) the caller waits and calls Flush again, likewise.
	Flush(ctx context.Context, c Checkpoint) error

	// Close lets go of connections and files. It makes nothing durable.
	Close() error
}

// Roller is a Sink that itself says when to flush, because its output must be cut
// at places that depend on the input alone.
type Roller interface {
	Sink
	// Due reports whether Flush is to be called before the next Write. It is asked
	// after each group of records that the reorderer released together (after each
	// record where there is none) and when only time has passed in the stream.
	// stamp is the append stamp up to which the input has been read.
	Due(stamp int64) bool
}

// Resumer is a Sink whose destination holds the cursor. Offsets of partitions that a
// Flush does not name stay: another session, or another worker, had those.
type Resumer interface {
	Sink
	// Resume returns the checkpoint last flushed; ok is false where there is none.
	// It is called once, before the first Write, and repairs what a crash left.
	Resume(ctx context.Context) (c Checkpoint, ok bool, err error)
}

// Checkpoint is where a sink goes on after a restart.
type Checkpoint struct {
	// Offsets is the lowest offset of each partition that is not yet durable at
	// the destination, counting what waits in the reorderer.
	Offsets map[Partition]int64 `json:"offsets"`
	// Epochs are the leader epochs of the records before these offsets, where they are
	// known: a journal that has lost records shows by them.
	Epochs map[Partition]int32 `json:"epochs,omitempty"`
	// Reorder is the reorderer's own small state; nil where records are not ordered.
	Reorder []byte `json:"reorder,omitempty"`
}

// Partition names one partition of a stream.
type Partition struct {
	Stream string
	Number int32
}

// Delivery is a record on its way to a sink, decoded, with the sink's `where`
// already applied: a change that leaves the set comes as OpDelete, one that
// enters it as OpCreate.
type Delivery struct {
	Record
	// Op is what the sink is to do.
	Op Op
	// Before and After are the row's images; for a record that is no change of a
	// database, After is its value. Either may be absent (see Row.Absent).
	Before, After Row
	// Version grows with each change of the same key; see Record.Version.
	Version uint64
	// Late marks a record that came after its time had been released.
	Late bool

	// partial says that Before may hold less than the whole row.
	partial bool
}

// Op is the kind of a change, with the letters of Debezium's envelope.
type Op byte

// The operations.
const (
	OpCreate   Op = 'c'
	OpUpdate   Op = 'u'
	OpDelete   Op = 'd'
	OpRead     Op = 'r' // a row read by a snapshot
	OpTruncate Op = 't' // the table was emptied
)

// SinkEnv is what a sink gets from its surroundings.
type SinkEnv struct {
	Pipeline string
	Name     string
	// Streams are the streams it reads, with their ids, which outlive a rename and
	// differ after a stream was deleted and made again. A sink that keeps versions or a
	// cursor at its destination records ids and Epoch there and refuses others.
	Streams []StreamID
	// Epoch is the replay epoch, 0 to MaxEpoch.
	Epoch uint16
	// Cursor is where this run goes on, as an earlier run of the sink committed it;
	// nil at the first start. From it a sink that leaves a mark at its destination
	// learns that the destination was lost or set back in the meantime.
	Cursor map[Partition]int64
	// Highest returns the greatest append stamp that the streams have issued so far;
	// a version at the destination above it comes from somewhere else.
	Highest func(ctx context.Context) (int64, error)
	Log     *slog.Logger
}

// StreamID is a stream's name and id.
type StreamID struct {
	Name string
	ID   string
}

// SinkConfig is the section of the pipeline file that configures one sink.
type SinkConfig interface {
	configs.Section
	// OpenSink returns the sink. It does not block on the network: a destination
	// that is down is Flush's (or Resume's) to report.
	OpenSink(env SinkEnv) (Sink, error)
	// Into changes the section so that the sink writes to the named shadow (another
	// index, key prefix, folder) in place of its live target.
	Into(target string) error
}

// Claimer is a SinkConfig whose destination must be its own.
type Claimer interface {
	// Claims returns the places that a sink of these streams fills; two sinks of a
	// pipeline with a place in common are refused.
	Claims(streams []string) []string
}

// SinkSpec is an entry in the list of the kinds of sink.
type SinkSpec struct {
	Kind string
	Doc  string
	New  func() SinkConfig
}
