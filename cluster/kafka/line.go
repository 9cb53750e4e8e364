package kafka

import (
	"context"
	"sync"
	"time"
)

// line is where a connection's requests wait to be answered, in the order in which they
// came. The writer sleeps until the first of them can be answered: a produce request
// wakes it when it is stored, not when it comes, as each waking costs as much as the
// request does else.
//
// One goroutine puts, one takes; any may ring and end.
type line struct {
	room chan struct{} // holds a token for each request in line
	wake chan struct{} // something may have become ready

	mu      sync.Mutex  // guards what follows
	waiting []pending   // in order
	store   []pending   // what waiting is cut from
	ended   bool        // nothing is taken any more
	timer   *time.Timer // rings when a produce request's patience may be over; nil until there was one
	armed   bool
}

func newLine() *line {
	return &line{room: make(chan struct{}, inFlight), wake: make(chan struct{}, 1)}
}

// put adds a request, once there is room for it.
func (l *line) put(ctx context.Context, p pending) error {
	select {
	case l.room <- struct{}{}:
	default:
		select {
		case l.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.mu.Lock()
	if len(l.waiting) == 0 {
		l.waiting = l.store[:0]
	}
	l.waiting = append(l.waiting, p)
	if len(l.waiting) == 1 {
		l.store = l.waiting
	}
	if p.produce != nil && !l.armed {
		l.arm(time.Until(p.produce.deadline))
	}
	l.mu.Unlock()
	if p.ready() {
		l.ring()
	}
	return nil
}

// take returns the next request that can be answered, and calls idle before it sleeps
// until there is one; ok is false when the line has ended.
func (l *line) take(idle func() error) (p pending, ok bool, err error) {
	for {
		if p, ok, ended := l.first(); ok || ended {
			return p, ok, nil
		}
		if err := idle(); err != nil {
			return p, false, err
		}
		<-l.wake
	}
}

func (l *line) first() (p pending, ok, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return p, false, true
	case len(l.waiting) == 0:
		return p, false, false
	}
	if p = l.waiting[0]; !p.ready() && !p.late() {
		if !l.armed {
			l.arm(time.Until(p.produce.deadline))
		}
		return pending{}, false, false
	}
	l.waiting[0] = pending{}
	l.waiting = l.waiting[1:]
	<-l.room
	return p, true, false
}

// arm makes the line ring after a while. The caller holds mu. One timer serves all
// requests: it is not moved for each, but set anew when it has rung too early.
func (l *line) arm(d time.Duration) {
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.expire)
		return
	}
	l.timer.Reset(d)
}

func (l *line) expire() {
	l.mu.Lock()
	l.armed = false
	l.mu.Unlock()
	l.ring()
}

// ring wakes the writer, if it sleeps, to look at the first request.
func (l *line) ring() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake, or about to be
	}
}

// end makes take return.
func (l *line) end() {
	l.mu.Lock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.ring()
}

// abandon drops all that is in line. Nobody puts any more.
func (l *line) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.waiting {
		p.abandon()
	}
	l.waiting = nil
}
