package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/daybook-data/daybook/pipeline"
)

// ErrFenced is what an Emitter returns after its run was declared dead.
var ErrFenced = errors.New("sourcetest: the emitter is fenced")

// Emitter is the way into a Journal for one run of a source. Its own methods and
// those of pipeline.Emitter are safe for concurrent use.
type Emitter struct {
	journal *Journal

	// All below is read and written under journal.mu.
	known   map[string]int  // positions to leave out, and where they stand
	forEver bool            // leave them out each time, and those of this run too
	used    map[string]bool // positions of this run
	rng     *rand.Rand      // decides what becomes durable by itself; nil: nothing
	fenced  bool
	fail    error
	failAt  int // the calls of Emit that are still let through before fail
	failing bool
	flushes error
	blocked chan struct{} // not nil: Emit waits until it is closed
	emits   int
	faults  []string
}

var _ pipeline.Emitter = (*Emitter)(nil)

// FailEmit makes every Emit after the next n return err.
func (e *Emitter) FailEmit(n int, err error) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	e.failing, e.failAt, e.fail = true, n, err
}

// FailFlush makes every Flush return err.
func (e *Emitter) FailFlush(err error) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	e.flushes = err
}

// Block makes Emit wait until unblock is called or its context ends.
func (e *Emitter) Block() (unblock func()) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	c := make(chan struct{})
	e.blocked = c
	return func() {
		e.journal.mu.Lock()
		defer e.journal.mu.Unlock()
		if e.blocked == c {
			e.blocked = nil
			close(c)
		}
	}
}

// Emits returns how often Emit was called.
func (e *Emitter) Emits() int {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return e.emits
}

// Faults returns what the source did wrong, a sentence each.
func (e *Emitter) Faults() []string {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return append([]string(nil), e.faults...)
}

// Emit implements pipeline.Emitter.
func (e *Emitter) Emit(ctx context.Context, records []pipeline.Record, resume pipeline.Position) error {
	if err := e.wait(ctx); err != nil {
		return err
	}
	j := e.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.fenced:
		return ErrFenced
	case e.failing && e.failAt == 0:
		return e.fail
	case e.failing:
		e.failAt--
	}
	for i := range records {
		e.append(&records[i])
	}
	if resume != "" {
		j.checkpoints = append(j.checkpoints, checkpoint{resume: resume, needs: len(j.entries), end: e.end()})
	}
	if e.rng != nil && e.rng.IntN(3) == 0 {
		j.settle(e.rng.IntN(len(j.entries) + 1))
	}
	if len(records) > 0 {
		close(j.changed)
		j.changed = make(chan struct{})
	}
	return nil
}

// wait counts the call and holds it while the emitter is blocked.
func (e *Emitter) wait(ctx context.Context) error {
	e.journal.mu.Lock()
	e.emits++
	blocked := e.blocked
	e.journal.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// append takes one record, or leaves it out; journal.mu is held.
func (e *Emitter) append(r *pipeline.Record) {
	j := e.journal
	if r.Position == "" {
		e.faults = append(e.faults, fmt.Sprintf("a record has no Position: %.200q", r.Value))
	}
	if e.used[r.Position] && !e.forEver {
		e.faults = append(e.faults, fmt.Sprintf("the Position %q was used twice in one run", r.Position))
	}
	e.used[r.Position] = true
	r.Stamp = 0
	if _, known := e.known[r.Position]; known {
		if !e.forEver {
			delete(e.known, r.Position)
		}
		return
	}
	if e.forEver {
		e.known[r.Position] = len(j.entries)
	}
	j.stamp++
	r.Stamp, r.Source, r.Partition = j.stamp, "test", partitionOf(r)
	j.entries = append(j.entries, entry{record: clone(*r), handed: *r})
}

// end is where a run that begins here would have to read the journal from: what was
// found there and has not come from the source again lies behind the position.
func (e *Emitter) end() int {
	end := len(e.journal.entries)
	if e.forEver {
		return end
	}
	for _, i := range e.known {
		end = min(end, i)
	}
	return end
}

// settle makes the first n entries durable; mu is held.
func (j *Journal) settle(n int) {
	for i := range j.entries[:n] {
		j.entries[i].durable = true
	}
}

// Flush implements pipeline.Emitter.
func (e *Emitter) Flush(ctx context.Context) error {
	j := e.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.fenced:
		return ErrFenced
	case e.flushes != nil:
		return e.flushes
	}
	j.settle(len(j.entries))
	return nil
}

// changedAfterwards returns the positions of records whose bytes the source wrote to
// after it had handed them over.
func (j *Journal) changedAfterwards() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var changed []string
	for _, e := range j.entries {
		if !bytes.Equal(e.record.Value, e.handed.Value) || !bytes.Equal(e.record.Key, e.handed.Key) {
			changed = append(changed, e.record.Position)
		}
	}
	return changed
}

func clone(r pipeline.Record) pipeline.Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	headers := make([]pipeline.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = pipeline.Header{Key: h.Key, Value: bytes.Clone(h.Value)}
	}
	r.Headers = headers
	return r
}
