package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxInFlight bounds the bytes of a source that are on their way to the journal.
const maxInFlight = 32 << 20

// maxSpan bounds one span, so that a long Emit does not outgrow maxInFlight.
const maxSpan = 2 << 20

// emitter is the Emitter of one run of a source.
type emitter struct {
	client *kgo.Client
	stream StreamInfo
	source string
	limit  int // the longest value that fits one record
	stamps *stamper
	flight *flight
	count  *sourceCounters
	commit *committer // nil where appends are not in transactions
	// anchored is closed once a checkpoint holds a position of the source; nil where one
	// did before this run. Until then a crash would start the source anew, as the file
	// says, and what it had begun to read could be gone (a rotated log, the end of the
	// binlog at that moment): so the first Emit with a position waits.
	anchored <-chan struct{}

	// turn holds a token while records are emitted or a transaction ends, which may take
	// for as long as the journal is silent: take it by take, which ctx ends.
	// parts and runs are used by the goroutine that has it.
	turn  chan struct{}
	parts *partitioner
	runs  runs
	// mu keeps the order of stamps that of appends. It is taken before flight.mu, and never
	// held while the journal is waited for: the status takes it.
	mu   sync.Mutex
	seen seen
}

var _ Emitter = (*emitter)(nil)

// Emit implements Emitter.
func (e *emitter) Emit(ctx context.Context, records []Record, resume Position) error {
	e.count.emits.Add(1)
	for {
		if err := e.flight.room(ctx, maxInFlight); err != nil {
			return err
		}
		n, err := e.emitSome(ctx, records, resume)
		if err != nil {
			return err
		}
		if n == len(records) {
			return e.anchor(ctx, resume)
		}
		records = records[n:]
	}
}

// emitSome emits the first of the records, and the position with the last of them.
func (e *emitter) emitSome(ctx context.Context, records []Record, resume Position) (n int, err error) {
	if err := e.take(ctx); err != nil {
		return 0, err
	}
	defer e.pass()
	n, bytes, apart := e.runs.next(e.parts, records, e.runs.affordable(time.Now()))
	if apart {
		if err := e.runs.end(ctx, e.client.Flush); err != nil {
			return 0, err
		}
	}
	if n < len(records) {
		resume = ""
	}
	e.emit(records[:n], bytes, resume)
	if e.commit != nil {
		e.commit.grown(bytes)
	}
	return n, nil
}

// anchor waits, on the first run of a source, until its first position is kept.
func (e *emitter) anchor(ctx context.Context, resume Position) error {
	if e.anchored == nil || resume == "" {
		return nil
	}
	if e.commit != nil {
		e.commit.want()
	}
	select {
	case <-e.anchored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take waits for the turn to emit, or to end a transaction.
func (e *emitter) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass gives the turn back.
func (e *emitter) pass() { <-e.turn }

// emit stamps the records that are new and puts them on their way.
func (e *emitter) emit(records []Record, bytes int64, resume Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := e.stamp(records)
	if resume != "" {
		e.seen.covered()
	}
	s := e.flight.open(len(fresh), bytes, resume)
	if len(fresh) == 0 {
		return
	}
	e.parts.turn()
	done := func(k *kgo.Record, err error) { e.flight.ack(s, k.Partition, k.Offset, err) }
	headers, text := 0, 0
	for i := range fresh {
		headers += len(fresh[i].Headers) + stampHeaders
		text += len(fresh[i].Position) + len(fresh[i].Table) + len(e.source) + 2*20
	}
	slab := make([]kgo.Record, len(fresh))
	room := make([]kgo.RecordHeader, headers)
	buf := make([]byte, 0, text)
	times := e.stream.timestamps()
	for i := range fresh {
		room, buf = toKafka(&slab[i], &fresh[i], times, room, buf)
		// The record's fate must not hang on the context of whoever emitted it: it is in
		// the flight until the journal has answered.
		e.client.Produce(context.Background(), &slab[i], done)
	}
	e.count.records.Add(int64(len(fresh)))
	e.count.bytes.Add(bytes)
}

// stamp returns the records that the journal does not hold, ready to be appended, long
// ones in pieces. A record of the slice given has its stamp then, and none if it was
// left out.
func (e *emitter) stamp(records []Record) []Record {
	stamp := e.stamps.reserve(len(records))
	fresh := make([]Record, 0, len(records))
	for i := range records {
		r := records[i]
		if r.Position != "" && e.seen.repeats(r.Position, stamp+int64(i)) {
			e.count.repeats.Add(1)
			continue
		}
		r.Stream, r.Source, r.Stamp = e.stream.Name, e.source, stamp+int64(i)
		records[i].Stamp = r.Stamp
		limit := max(e.limit-int(r.size())+len(r.Value), 1<<10)
		if len(r.Value) <= limit {
			fresh = append(fresh, r)
			continue
		}
		// Its pieces take stamps of their own, above those of the records before; all
		// that follow in this batch then need higher ones.
		pieces := split(&r, limit, e.stamps.reserve(1+len(r.Value)/limit))
		fresh = append(fresh, pieces...)
		stamp = e.stamps.reserve(len(records)-i) - int64(i) // the next is stamp+i+1
	}
	return fresh
}

// Flush implements Emitter.
func (e *emitter) Flush(ctx context.Context) error {
	upTo := e.flight.opened()
	if e.commit != nil {
		e.commit.want()
	}
	return e.flight.durable(ctx, upTo)
}

// promised is a stamp below which all that was emitted is durable, and above which all
// later records will be, with what was pending when it was given.
type promised struct {
	stamp   int64
	pending pending
}

// promise makes the promise.
func (e *emitter) promise(ctx context.Context) (promised, error) {
	e.mu.Lock()
	p := promised{stamp: e.stamps.next(), pending: e.seen.pending()}
	upTo := e.flight.opened()
	e.mu.Unlock()
	if e.commit != nil {
		e.commit.want()
	}
	return p, e.flight.durable(ctx, upTo)
}

// expected returns how many positions known from the journal have not come again.
func (e *emitter) expected() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, once := e.seen.(*seenOnce); !once {
		return 0
	}
	return e.seen.len()
}

// overhead is room for what stands in a batch beside a record's value.
const overhead = 16 << 10

// valueLimit returns the longest value that fits one record of the stream.
func valueLimit(stream StreamInfo) int {
	return max(min(stream.MaxMessage, maxBatch)-overhead, 1<<10)
}

// sourceCounters are the numbers of a source that live longer than its runs.
type sourceCounters struct {
	emits, records, bytes, repeats atomic.Int64
}

// errSourceRunOver is what ends a flight when its run ends for another reason.
var errSourceRunOver = errors.New("the run of the source is over")
