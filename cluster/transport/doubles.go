package transport

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// Two processes that have one node's id run on copies of one directory. Whoever is connected first keeps its place: the
// other one is refused as long as anything is heard of the first, on the connections that it opened or on those that this
// node opened to it.

// doubled is the objection to a node that comes as another process than the one that is connected as the same node.
func (t *Transport) doubled(h hello) objection {
	lane := h.lane
	if lane == laneStranger {
		lane = laneControl
	}
	t.mu.Lock()
	s, p := t.served[servedKey{h.node, lane}], t.peers[h.node]
	t.mu.Unlock()
	at := ""
	switch {
	case s != nil && s.another(h):
		at = s.address
	case p != nil && p.another(h):
		at = p.stats().Address
	default:
		return objection{}
	}
	if p != nil {
		p.twins.note(h.address, time.Now())
	}
	if at != "" {
		at = " at " + at
	}
	return objection{
		fmt.Sprintf("another process%s is connected as node %q: two run on copies of one data directory, or this one was started before the end of the former was seen", at, h.node),
		flagDoubled,
	}
}

// another says whether the process that opened this connection is another one than h is from, and alive.
func (s *served) another(h hello) bool {
	return s.instance != h.instance && s.t.passed(s.heard.Load()) < s.t.o.grace(s.address, h.address)
}

// another says whether the process that this node has a session to is another one than h is from, and alive.
func (p *peer) another(h hello) bool {
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	return s != nil && s.instance != 0 && s.instance != h.instance && p.t.passed(s.heard.Load()) < p.t.o.grace(s.address, h.address)
}

// grace is for how long a process may be silent before another one takes its place. One that is at the same address has
// it already: the former is gone, and its end was not seen yet. One that comes from elsewhere waits until a node is taken
// for dead.
func (o *Options) grace(former, next string) time.Duration {
	if former == next || former == "" || next == "" {
		return 3 * o.every()
	}
	return max(3*o.every(), o.Silence)
}

// twins remembers who was refused as the double of a peer. It is safe for concurrent use.
type twins struct {
	mu          sync.Mutex // guards all below
	address     string     // where the refused one says it is
	first, last time.Time  // when the series of refusals began, and the last one was
}

// twinGap parts two series of refusals: who is refused tries again more often.
const twinGap = 10 * time.Second

func (w *twins) note(address string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.address != address || now.Sub(w.last) > twinGap {
		w.address, w.first = address, now
	}
	w.last = now
}

// stays returns where another process is that goes on being refused, after the time in which one that took the place of a
// former one is let in; empty if there is none.
func (w *twins) stays(now time.Time, after time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() || now.Sub(w.last) > twinGap || w.last.Sub(w.first) < after {
		return ""
	}
	return cmp.Or(w.address, "an address that it does not say")
}
