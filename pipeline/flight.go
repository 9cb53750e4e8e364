package pipeline

import (
	"context"
	"maps"
	"sync"
)

// flight follows records from Emit until they are durable, and knows up to where all
// are. It is safe for concurrent use.
//
// Each Emit is a span. Spans are appended in order, acknowledged in any order, and
// leave from the front: what has left is the durable prefix.
type flight struct {
	mu       sync.Mutex
	spans    []*span // in order
	last     int64   // number of the span opened last
	bytes    int64   // on the way
	records  int64   // on the way
	done     prefix
	err      error         // first failure; final
	changed  chan struct{} // closed and renewed at each change that someone waits for
	waiting  bool
	commits  bool // spans leave only by commit
	onFailed func(error)
}

// span is what one Emit put on the way.
type span struct {
	number int64
	open   int // records not acknowledged
	bytes  int64
	resume Position
	ends   []partitionEnd
}

// partitionEnd is the offset behind a record of a partition.
type partitionEnd struct {
	partition int32
	end       int64
}

// prefix is what is durable for certain.
type prefix struct {
	span int64
	// reached are the ends of all that is durable.
	reached map[int32]int64
	// resume is the last place at which the source can go on, and ends are the ends of
	// what it emitted up to there. Records that follow without such a place (in the
	// middle of a transaction) do not move ends: the source will emit them again, and
	// the tail behind ends must then show them.
	resume Position
	ends   map[int32]int64
	// covered says that nothing durable lies behind resume.
	covered bool
}

// newFlight returns a flight that begins behind the given ends. With commits, what is
// acknowledged is durable only with the next call of commit.
func newFlight(from Position, ends map[int32]int64, commits bool, onFailed func(error)) *flight {
	return &flight{
		done:     prefix{resume: from, ends: ends, reached: maps.Clone(ends), covered: true},
		changed:  make(chan struct{}),
		commits:  commits,
		onFailed: onFailed,
	}
}

// open begins a span of n records. Where there are none the position moves on with the
// records before it.
func (f *flight) open(n int, bytes int64, resume Position) *span {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n == 0 && len(f.spans) > 0 {
		if s := f.spans[len(f.spans)-1]; resume != "" {
			s.resume = resume
		}
		return nil
	}
	if n == 0 {
		bytes = 0 // nothing is on the way that an acknowledgement could take off again
	}
	f.last++
	s := &span{number: f.last, open: n, bytes: bytes, resume: resume}
	f.spans = append(f.spans, s)
	f.bytes += bytes
	f.records += int64(n)
	if n == 0 {
		f.leave(f.last)
	}
	return s
}

// ack notes that a record of the span is in the journal, or why it is not.
func (f *flight) ack(s *span, partition int32, offset int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.fail(err)
		return
	}
	s.reached(partition, offset+1)
	s.open--
	f.records--
	if s.open > 0 {
		return
	}
	f.bytes -= s.bytes
	if f.commits {
		f.notify()
	} else if f.spans[0] == s && f.err == nil {
		f.leave(f.last)
	}
}

func (s *span) reached(partition int32, end int64) {
	for i := range s.ends {
		if s.ends[i].partition == partition {
			s.ends[i].end = max(s.ends[i].end, end)
			return
		}
	}
	s.ends = append(s.ends, partitionEnd{partition, end})
}

// commit makes all spans up to the given one durable; all of them are acknowledged.
func (f *flight) commit(upTo int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.leave(upTo)
	}
}

// leave lets acknowledged spans go from the front. mu is held.
func (f *flight) leave(upTo int64) {
	n := 0
	for n < len(f.spans) && f.spans[n].open == 0 && f.spans[n].number <= upTo {
		s := f.spans[n]
		f.done.pass(s)
		f.spans[n] = nil
		n++
	}
	if n > 0 {
		f.spans = f.spans[n:]
		f.notify()
	}
}

// pass takes in the next span.
func (p *prefix) pass(s *span) {
	p.span = s.number
	for _, e := range s.ends {
		p.reached[e.partition] = max(p.reached[e.partition], e.end)
		p.covered = false
	}
	if s.resume != "" {
		p.resume, p.ends, p.covered = s.resume, maps.Clone(p.reached), true
	}
}

// fail ends the flight: nothing is durable any more that was not before. mu is held.
func (f *flight) fail(err error) {
	if f.err == nil {
		f.err = err
		f.notify()
		f.onFailed(err)
	}
}

// stop ends the flight from outside.
func (f *flight) stop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail(err)
}

// notify wakes all that wait. mu is held.
func (f *flight) notify() {
	if f.waiting {
		close(f.changed)
		f.changed, f.waiting = make(chan struct{}), false
	}
}

// wait returns nil once ok, which is called with mu held, says so.
func (f *flight) wait(ctx context.Context, ok func() bool) error {
	f.mu.Lock()
	for {
		if f.err != nil {
			defer f.mu.Unlock()
			return f.err
		}
		if ok() {
			f.mu.Unlock()
			return nil
		}
		changed := f.changed
		f.waiting = true
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		f.mu.Lock()
	}
}

// room waits until less than limit bytes are on the way.
func (f *flight) room(ctx context.Context, limit int64) error {
	return f.wait(ctx, func() bool { return f.bytes < limit })
}

// durable waits until all spans up to the given one have left.
func (f *flight) durable(ctx context.Context, upTo int64) error {
	return f.wait(ctx, func() bool { return f.done.span >= upTo })
}

// opened returns the number of the span opened last.
func (f *flight) opened() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// idle reports whether nothing is on the way.
func (f *flight) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.spans) == 0
}

// onTheWay returns the bytes not acknowledged.
func (f *flight) onTheWay() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// advance moves the ends on while nothing is on the way since the given span.
func (f *flight) advance(span int64, ends map[int32]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != span || len(f.spans) > 0 || !f.done.covered {
		return
	}
	for p, end := range ends {
		f.done.ends[p] = max(f.done.ends[p], end)
		f.done.reached[p] = max(f.done.reached[p], end)
	}
}

// durablePrefix returns a copy of the prefix.
func (f *flight) durablePrefix() prefix {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.done
	p.ends, p.reached = maps.Clone(p.ends), maps.Clone(p.reached)
	return p
}
