package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// beats are for use again: heartbeats are most of what an idle node does, and each would leave a channel and more behind.
type beats struct{ pool sync.Pool }

// beat is a heartbeat that somebody waits for.
type beat struct {
	call
	outcome chan outcome
}

func (p *beats) get() *beat {
	if b, ok := p.pool.Get().(*beat); ok {
		return b
	}
	b := &beat{outcome: make(chan outcome, 1)}
	b.done = func(a answer, err error) { b.outcome <- outcome{a, err} }
	return b
}

// sendHeartbeat sends raft's heartbeat and waits for the answer.
func (g *Group) sendHeartbeat(s *session, to raft.ServerID, term uint64, resp *raft.AppendEntriesResponse) error {
	g.leader.Store(nil) // who sends heartbeats leads
	b := g.t.beats.get()
	defer g.t.beats.pool.Put(b) // a session is done with a call when it tells the outcome
	if err := s.pulse(g.id.address(to), term, 0, &b.call); err != nil {
		return err
	}
	o := <-b.outcome // every call ends: by its answer, its deadline, or with the session
	*resp = raft.AppendEntriesResponse{}
	if o.err == nil {
		o.err = o.answer.err()
	}
	if o.err == nil {
		*resp = s.peer.appended(o.answer)
	}
	return o.err
}

// appended is what the peer's answer to an AppendEntries says.
func (p *peer) appended(a answer) raft.AppendEntriesResponse {
	return raft.AppendEntriesResponse{
		RPCHeader: p.head, Term: a.term, LastLog: a.lastLog,
		Success: a.flags&flagSuccess != 0, NoRetryBackoff: a.flags&flagNoBackoff != 0,
	}
}
