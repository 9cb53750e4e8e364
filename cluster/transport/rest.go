package transport

import (
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// ErrAtRest ends raft's pipeline to a follower of a group to which nothing is appended. Nothing is lost by it: raft sends
// single requests from then on.
var ErrAtRest = errors.New("nothing is appended to the group")

// rest is whether a group is at rest: nothing was appended to this member's log for Options.Timeout. A pipeline costs its
// leader a goroutine, the larger half of another's stack and a queue for each follower, and is worth it only for requests
// that follow each other. So a group at rest has none.
//
// Without one, raft waits for each answer before it looks whether there is something new, and at rest it now and then waits
// for that to a request without entries, which goes with the heartbeats of a window. Appends has those go at once. The zero
// value is that of a group that nobody tells of appends, and is never at rest.
type rest struct {
	appended atomic.Int64 // the moment when entries were appended last
	waiting  atomic.Int32 // requests without entries that raft waits for
}

// Appends says that entries are about to be appended to the log of the group's member. A member that says so once has to say it each
// time. It does not wait.
func (g *Group) Appends() {
	g.rest.appended.Store(g.t.now())
	if g.rest.waiting.Load() == 0 {
		return
	}
	for _, p := range g.t.peerList() {
		if s, err := p.current(); err == nil {
			_ = s.pulses.flush() // an error ends the session elsewhere
		}
	}
}

// atRest says whether the group is at rest, told whether somebody tells it of appends.
func (g *Group) atRest() (rests, told bool) {
	since := g.rest.appended.Load()
	return since != 0 && g.t.passed(since) > g.t.o.Timeout, since != 0
}

// awaitEmpty is called before raft waits for the answer to a request without entries that is among a session's heartbeats,
// and returns what is to be called after. It sees appends that began before, and Appends sees it if they begin later.
func (g *Group) awaitEmpty(s *session) (answered func()) {
	g.rest.waiting.Add(1)
	if rests, told := g.atRest(); told && !rests {
		_ = s.pulses.flush() // an error ends the session elsewhere
	}
	return func() { g.rest.waiting.Add(-1) }
}

// AppendEntriesPipeline implements raft.Transport.
func (g *Group) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	if rests, _ := g.atRest(); rests {
		return nil, raft.ErrPipelineReplicationNotSupported // raft asks again after each request
	}
	s, err := g.session(target)
	if err != nil {
		return nil, err
	}
	return newPipeline(g, s, id), nil
}

// mayRest says whether the pipeline can end as its group is at rest: raft has every answer. An entry that comes now has raft
// look again, and finds no pipeline.
func (p *pipeline) mayRest() bool {
	rests, _ := p.g.atRest()
	p.mu.Lock()
	defer p.mu.Unlock()
	return rests && p.flying == 0 && len(p.done) == 0
}
