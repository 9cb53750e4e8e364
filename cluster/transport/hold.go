package transport

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// holdLook is how often a request that waits for a node looks whether there is still somebody to wait.
	holdLook = time.Second
	// leastReopen and mostReopen are how long one waits before it asks again a node that has not opened the group.
	leastReopen = 50 * time.Millisecond
	mostReopen  = 500 * time.Millisecond
)

// hold is a request of a leader that its member cannot take now: its node is down, or has not opened the group yet. If it
// failed, raft 1.8.0 would wait ever longer before the next, up to 10 s, whatever comes meanwhile (replication.go,
// replicateTo). So it waits here, in raft's goroutine, as long as this member leads in its term and has the other among its
// members. Nothing else is held: heartbeats and votes fail at once, so a lease ends as ever.
type hold struct {
	g     *Group
	to    raft.ServerID
	at    raft.ServerAddress
	term  uint64
	pause time.Duration // of the last time that the group was not open
}

// again waits until a request that failed with err can be sent again; false: it has failed.
func (h *hold) again(err error) bool {
	switch {
	case !h.wanted():
	case errors.Is(err, ErrNotOpen):
		h.pause = min(max(2*h.pause, leastReopen), mostReopen)
		return h.g.pause(h.pause) && h.wanted()
	case errors.Is(err, ErrUnreachable):
		h.pause = 0
		return h.awaitSession()
	}
	return false
}

// awaitOpen returns the session to a member for a request that can be sent only once: a leader asks by a heartbeat whether the
// member's group is open.
func (g *Group) awaitOpen(to raft.ServerID, at raft.ServerAddress, term uint64) (*session, error) {
	h := hold{g: g, to: to, at: at, term: term}
	for {
		s, err := g.session(at)
		if err == nil && h.wanted() {
			err = g.sendHeartbeat(s, to, term, &raft.AppendEntriesResponse{})
		}
		if err == nil || !h.again(err) {
			return s, err
		}
	}
}

// wanted says whether the group's member leads in the request's term, and sends it to one of its members. One that does not
// say when it ceases to lead holds nothing.
func (h *hold) wanted() bool {
	committed, b := h.g.committed.Load(), h.g.bound.Load()
	if committed == nil || b == nil || h.g.released() {
		return false
	}
	_, term, leads := (*committed)()
	return leads && term == h.term && slices.ContainsFunc(b.servers(), func(s raft.Server) bool { return s.ID == h.to })
}

// awaitSession waits until there is a session to the node.
func (h *hold) awaitSession() bool {
	p, err := h.g.t.peer(string(h.at))
	if err != nil {
		return false
	}
	if _, err := p.current(); err == nil { // one that is ending, or the next
		return h.g.pause(leastBackoff) && h.wanted()
	}
	look := time.NewTicker(holdLook)
	defer look.Stop()
	for h.wanted() {
		select {
		case <-p.arrival():
			return true
		case <-look.C:
		case <-p.ctx.Done():
			return false
		case <-h.g.letGo:
			return false
		}
	}
	return false
}

// pause returns false if it was cut short.
func (g *Group) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.letGo:
	case <-g.t.ctx.Done():
	}
	return false
}

// LetGo fails the requests that wait for members which are not there, and has no others wait. Who shuts raft down calls it
// after it has begun: raft closes the group only when these requests have ended.
func (g *Group) LetGo() { g.letGoOnce.Do(func() { close(g.letGo) }) }

func (g *Group) released() bool {
	select {
	case <-g.letGo:
		return true
	default:
		return false
	}
}

// unfold has the next request to a member go whole: it may be there anew, and know nothing.
func (g *Group) unfold(member raft.ServerID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a, ok := g.acked[member]; ok {
		a.instance = 0
		g.acked[member] = a
	}
}

// arrival is closed while there is a session, and when there is one again.
func (p *peer) arrival() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.arrived
}
