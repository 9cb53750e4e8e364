package storage

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Mode says when StoreLogs may return.
type Mode uint8

const (
	// Durable syncs each StoreLogs to stable storage before it returns.
	Durable Mode = iota
	// Replicated syncs in the background, within Options.FlushEvery.
	Replicated
)

// Retention bounds what a journal keeps. Whole segments are removed from the front; zero fields do not bound.
type Retention struct {
	Age   time.Duration // since a segment was last appended to, by the leader's clock
	Bytes int64         // of all segments together
}

// Options are the settings of a journal. The zero value is ready to use.
type Options struct {
	// Commands makes the journal the log of an ordinary state machine: the entries' data are stored as they are, and
	// raft may cut the front after a snapshot.
	Commands bool
	// Mode is Durable by default.
	Mode Mode
	// ReadDurable hides what is not yet on stable storage even if it is committed. Without it this is so while one member of
	// the group votes: nobody else has what it acknowledges from memory, and what readers saw must not be lost.
	ReadDurable bool
	// SegmentBytes is the size of a segment file: 128 MiB by default, at least 4 KiB, at most 1 GiB. It may differ from
	// one opening to the next and from replica to replica.
	SegmentBytes int64
	// FlushEvery bounds the time that data stays unsynced in the mode Replicated: 50 ms by default.
	FlushEvery time.Duration
	// Admit, if not nil, is asked before space is taken for an append; what it returns refuses it. It must not block.
	Admit func() error
	// OnFail, if not nil, is called once, when the journal has become read-only, by an error or by Close. It must not block
	// or call the journal but for Err.
	OnFail func()
	// OnDamage, if not nil, is told when a reader finds damage in a segment of which none was known; Damages has it from then
	// on. It must not block, nor call the journal.
	OnDamage func(*DamageError)
	// Retention keeps everything by default.
	Retention Retention
	// Spares is how many removed segments are kept for reuse, since overwriting a file is several times faster than
	// filling a new one: 2 by default, negative for none.
	Spares int
	// IndexCache is how many sealed segments' batch indexes are kept in memory, and may have their data in Cache: 16 by
	// default, or as many as fit into Cache.
	IndexCache int
	// Cache bounds the memory that readers of old data fill; journals may share one. One of its own by default.
	Cache *Cache
	// FS is the operating system's by default.
	FS vfs.FS
	// Boot names the running boot of the machine: in another one what was not synced may be gone. By default it is the
	// kernel's; where that is not known, every end that was not in order counts as one of the machine.
	Boot string
	// Now is time.Now by default.
	Now func() time.Time
	// Logger is silent by default.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	set(&o.SegmentBytes, 128<<20)
	set((*int64)(&o.FlushEvery), int64(50*time.Millisecond))
	if o.SegmentBytes < 4<<10 || o.SegmentBytes > 1<<30 {
		return o, fmt.Errorf("segment size %d is outside 4 KiB to 1 GiB", o.SegmentBytes)
	}
	o.SegmentBytes = int64(aligned(int(o.SegmentBytes)))
	if o.Spares == 0 {
		o.Spares = 2
	}
	if o.Cache == nil {
		o.Cache = NewCache(0)
	}
	if o.IndexCache <= 0 {
		o.IndexCache = max(16, int(o.Cache.budget/max(o.SegmentBytes, 64<<20)))
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Boot == "" {
		o.Boot = vfs.BootID()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o, nil
}
