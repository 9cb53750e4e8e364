package http

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// resume is the only position of this source: nothing is kept outside the journal,
// so wherever it goes on, it goes on from now.
const resume pipeline.Position = "http:1"

// submission is one request's records on their way. done gets the outcome once;
// release is called when the records need no memory any more.
type submission struct {
	records []pipeline.Record
	done    chan error
	release func()
}

// appender puts submissions into the journal: all that wait go together, with one
// flush. A submission is appended whole and is never taken back, even if its client
// has left: half of a request must not be stored.
type appender struct {
	queue   chan *submission
	stopped chan struct{} // closed when run has returned
	// since is when the group under way was begun, in µs; 0 where there is none.
	since atomic.Int64
}

// newAppender returns an appender for at most capacity submissions; submit does
// not block as long as no more than that are alive.
func newAppender(capacity int) *appender {
	return &appender{queue: make(chan *submission, capacity), stopped: make(chan struct{})}
}

func (a *appender) submit(s *submission) { a.queue <- s }

// run appends until the context ends or the journal refuses, and returns why.
func (a *appender) run(ctx context.Context, out pipeline.Emitter) error {
	defer close(a.stopped)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case first := <-a.queue:
			group := a.waiting(first)
			a.since.Store(time.Now().UnixMicro())
			err := commit(ctx, group, out)
			a.since.Store(0)
			for _, s := range group {
				s.done <- err
				s.release()
			}
			if err != nil {
				return err
			}
		}
	}
}

// waiting returns first and whatever stands behind it.
func (a *appender) waiting(first *submission) []*submission {
	group := []*submission{first}
	for len(group) < cap(a.queue) {
		select {
		case s := <-a.queue:
			group = append(group, s)
		default:
			return group
		}
	}
	return group
}

// commit returns nil once all of the group is durable.
//
// Guarantee 9.
func commit(ctx context.Context, group []*submission, out pipeline.Emitter) error {
	for _, s := range group {
		if err := out.Emit(ctx, s.records, resume); err != nil {
			return err
		}
	}
	return out.Flush(ctx)
}

// stalled reports whether the group under way has waited longer than patience.
func (a *appender) stalled(now time.Time, patience time.Duration) bool {
	since := a.since.Load()
	return since != 0 && now.UnixMicro()-since > patience.Microseconds()
}
