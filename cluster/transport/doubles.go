package transport

import (
	"fmt"
	"time"
)

// Two processes that have one node's id run on copies of one directory. Whoever is connected first keeps its place: the
// other one is refused as long as anything is heard of the first, on the connections that it opened or on those that this
// node opened to it.

// doubled is the objection to who comes as another process than the one that is connected as the same node.
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
