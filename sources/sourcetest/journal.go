package sourcetest

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// partitions is how many a Journal has: with one alone, a source that needs an
// order across partitions would pass.
const partitions = 3

// Journal is what outlives a source: the stream and the source's checkpoints. It is
// safe for concurrent use.
type Journal struct {
	mu          sync.Mutex
	entries     []entry
	checkpoints []checkpoint
	stamp       int64
	changed     chan struct{} // closed and replaced whenever entries grow
	live        *Emitter
}

// entry is a record as it was appended.
type entry struct {
	record  pipeline.Record // a deep copy
	handed  pipeline.Record // as the source handed it over, sharing its bytes
	durable bool
}

// checkpoint says that everything up to a position is in the journal, and that what
// of the source's records behind it is there stands at end or later.
type checkpoint struct {
	resume pipeline.Position
	needs  int // the first this many entries must be durable
	end    int
}

// NewJournal returns an empty journal.
func NewJournal() *Journal { return &Journal{changed: make(chan struct{})} }

// Records returns copies of all records, in the order of their stamps.
func (j *Journal) Records() []pipeline.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	records := make([]pipeline.Record, len(j.entries))
	for i, e := range j.entries {
		records[i] = e.record
	}
	return records
}

// Changed returns a channel that is closed at the next append.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Start returns the emitter for a new run of the source and the position from which
// it is to go on, as after a crash: the emitter before is fenced, what it had not
// flushed is partly lost, and the checkpoint is any of the last few. A nil rng loses
// nothing and takes the last one.
func (j *Journal) Start(rng *rand.Rand, source pipeline.Source) (pipeline.Position, *Emitter) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.live != nil {
		j.live.fenced = true
	}
	j.lose(rng)
	c := j.pick(rng)
	known := map[string]int{}
	forEver := false
	if d, ok := source.(pipeline.Deduper); ok && d.DedupeWindow() > time.Duration(0) {
		c.end, forEver = 0, true // the window of a test is never over
	}
	for i, e := range j.entries[c.end:] {
		known[e.record.Position] = c.end + i
	}
	j.live = &Emitter{journal: j, known: known, forEver: forEver, used: map[string]bool{}}
	if rng != nil { // its own: the caller's belongs to the caller's goroutine
		j.live.rng = rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
	}
	return c.resume, j.live
}

// lose removes, in each partition apart, a random tail of what is not durable.
func (j *Journal) lose(rng *rand.Rand) {
	if rng == nil {
		return
	}
	kept := j.entries[:0]
	var cut [partitions]bool
	for i, e := range j.entries {
		cut[e.record.Partition] = cut[e.record.Partition] || !e.durable && rng.IntN(4) == 0
		if cut[e.record.Partition] {
			j.dropCheckpoints(i)
			continue
		}
		e.durable = true
		kept = append(kept, e)
	}
	clear(j.entries[len(kept):])
	j.entries = kept
}

// dropCheckpoints removes those that counted on the entry at the given place. They
// were never stored: a checkpoint is, only after all before it was acknowledged.
func (j *Journal) dropCheckpoints(place int) {
	for len(j.checkpoints) > 0 && j.checkpoints[len(j.checkpoints)-1].needs > place {
		j.checkpoints = j.checkpoints[:len(j.checkpoints)-1]
	}
}

// pick returns one of the last checkpoints. Those after it are forgotten, as they
// would be: the next run writes its own.
func (j *Journal) pick(rng *rand.Rand) checkpoint {
	n := len(j.checkpoints)
	if n == 0 {
		return checkpoint{}
	}
	back := 0
	if rng != nil {
		back = rng.IntN(min(n, 5))
	}
	j.checkpoints = j.checkpoints[:n-back]
	return j.checkpoints[n-1-back]
}

// partitionOf is that of `partition_by: key`: records of one key keep their order.
func partitionOf(r *pipeline.Record) int32 {
	h := fnv.New32a()
	_, _ = h.Write(r.Key)
	if r.Key == nil {
		_, _ = h.Write([]byte(r.Position))
	}
	return int32(h.Sum32() % partitions)
}
