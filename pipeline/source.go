package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/daybook-data/daybook/configs"
)

// Position says where a source goes on after a restart: an opaque text of the
// source, complete in itself (for MySQL: file, offset and the full GTID set, and
// how far the snapshot got). The empty Position is a first start.
type Position string

// Source reads changes somewhere and emits them.
type Source interface {
	// Run emits until ctx ends, then returns ctx's error. A source opened with
	// SourceEnv.Once returns nil when it has emitted all that was there at its
	// start. Any other return is a failure: a *StopError where someone must act,
	// else an error after which Run may be called again from the last durable
	// Position. No goroutine survives Run.
	Run(ctx context.Context, from Position, out Emitter) error
}

// Emitter takes records on the way to the journal. It is safe for concurrent
// use; calls from one goroutine keep their order.
type Emitter interface {
	// Emit accepts records in order and sets their stamps, partitions and source.
	// A record whose Position the journal already holds is left out and counted: the
	// Stamp of that element of records stays zero, that of the others is set. resume is where the source would go on if all emitted so far were
	// durable; empty means that there is no safe place just here (the middle of a
	// transaction) and the last one given stands. Emit(ctx, nil, resume) moves the
	// position on while nothing of interest happens. It blocks while too much is in
	// flight.
	//
	// An error is final for this Run: the source returns it.
	Emit(ctx context.Context, records []Record, resume Position) error

	// Flush returns nil once all records emitted before are durable in the journal.
	Flush(ctx context.Context) error
}

// Deduper is a Source whose clients may send a record again much later (an HTTP
// client that saw a time-out). The emitter then knows the Positions of at least
// the last DedupeWindow, across restarts, and leaves repeats out.
type Deduper interface {
	DedupeWindow() time.Duration
}

// Receiver is a Source of what others send to it: nothing is there at a start that could be
// moved, so a run with Once makes its stream and leaves it at that.
type Receiver interface {
	Receives()
}

// Reporter is a Source or Sink that has more to say in `daybook status` than the
// loops around it know. Report is called at any time, from any goroutine.
type Reporter interface {
	Report() Report
}

// Report is what a connector says of itself. Unknown is left zero.
type Report struct {
	// Phase is one word: snapshot, catch-up, live, waiting, ...
	Phase string `json:"phase,omitempty"`
	// Detail says how far it got, as a person would ("orders: chunk 3, 41,000 rows").
	Detail string `json:"detail,omitempty"`
	// Lag is how far behind its origin the source is, in time.
	Lag time.Duration `json:"lag,omitempty"`
	// Counters are shown under their names and exported as metrics.
	Counters map[string]int64 `json:"counters,omitempty"`
	// Parked lists the parts of the origin that are left out until someone acts, while all
	// others go on. As long as there is one, the source is degraded and not ready.
	Parked []Parked `json:"parked,omitempty"`
}

// Parked is a part of an origin that can't be read.
type Parked struct {
	What  string    `json:"what"`  // shop.orders
	Since string    `json:"since"` // the place in the origin from which on it is missing
	At    time.Time `json:"at"`    // when that was noticed
	Code  string    `json:"code"`  // Code, Why and Fix are those of a StopError
	Why   string    `json:"why"`
	Fix   string    `json:"fix"`
}

// Describer is a Source whose positions say more than a person wants to read. Describe
// returns what an operator knows of one, on one line; it is called at any time, from
// any goroutine.
type Describer interface {
	Describe(Position) string
}

// SourceEnv is what a source gets from its surroundings.
type SourceEnv struct {
	Pipeline string
	Name     string
	Stream   string
	// Once asks for what is there at the start and no more.
	Once bool
	Log  *slog.Logger
}

// SourceConfig is the section of the pipeline file that configures one source.
type SourceConfig interface {
	configs.Section
	// OpenSource checks what the file alone can't tell and returns the source.
	// It does not block on the network: that is Run's.
	OpenSource(env SourceEnv) (Source, error)
}

// Rememberer is a SourceConfig whose source tells repeats by what its stream holds.
type Rememberer interface {
	// Remembers returns how long records must be kept for that; 0 where not at all.
	Remembers() time.Duration
}

// SourceSpec is an entry in the list of the kinds of source.
type SourceSpec struct {
	Kind string // the key in the pipeline file
	Doc  string // one sentence
	New  func() SourceConfig
	// Changes says that its records are changes of tables: their own order is never
	// changed, and one that is late is delivered all the same.
	Changes bool
}
