package raftgroup

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// serving is what a leader has to know before it answers readers.
type serving struct {
	round sync.Mutex // held during a round over the network, so that those who wait share the next one; taken before mu

	mu       sync.Mutex // guards all below
	term     uint64     // of which an entry is known to be committed
	verified time.Time  // when the last round began that confirmed the lead in this term
}

// Serves says whether this member leads and an entry of its own term is committed: only then is all that earlier leaders
// have acknowledged known to be committed here.
func (g *Group) Serves() bool {
	if g.alone != nil {
		return true
	}
	g.serving.mu.Lock()
	defer g.serving.mu.Unlock()
	return g.servesLocked()
}

func (g *Group) servesLocked() bool {
	if g.raft.State() != raft.Leader {
		return false
	}
	term := g.raft.CurrentTerm()
	if g.serving.term == term {
		return true
	}
	commit := g.raft.CommitIndex()
	var l raft.Log
	if err := g.journal.GetLog(commit, &l); err != nil || l.Term != term || g.raft.State() != raft.Leader {
		return false
	}
	g.journal.Commit(commit) // what earlier leaders have shown is not hidden again
	g.serving.term, g.serving.verified = term, time.Time{}
	return true
}

// Confirm returns nil if this member leads, and a majority has answered a round that began within a quarter of the election
// timeout. Nobody else is elected meanwhile by raft's timers. But a member may be told to stand at once, by those who take
// the leader for dead, though others hear it: then this one knows for up to that long no more than it did. For readers of
// records that is no harm: what they get is committed, and in order.
func (g *Group) Confirm() error { return g.ConfirmSince(time.Now().Add(-g.o.Timeout / 4)) }

// ConfirmSince returns nil if this member leads and a majority has answered a round that began after a time: what any
// leader had acknowledged by then is known here.
func (g *Group) ConfirmSince(since time.Time) error {
	if g.alone != nil {
		return nil
	}
	if _, confirmed, err := g.confirmed(since); confirmed || err != nil {
		return err
	}
	g.serving.round.Lock()
	defer g.serving.round.Unlock()
	term, confirmed, err := g.confirmed(since) // by the round that this one has waited for
	if confirmed || err != nil {
		return err
	}
	began := time.Now()
	if err := g.Verify(); err != nil {
		return err
	}
	g.serving.mu.Lock()
	defer g.serving.mu.Unlock()
	if !g.servesLocked() || g.serving.term != term {
		return ErrNotLeader
	}
	g.serving.verified = began
	return nil
}

// confirmed says in which term this member leads, and whether a round that began after a time has confirmed it.
func (g *Group) confirmed(since time.Time) (term uint64, yes bool, err error) {
	g.serving.mu.Lock()
	defer g.serving.mu.Unlock()
	if !g.servesLocked() {
		return 0, false, ErrNotLeader
	}
	return g.serving.term, g.serving.verified.After(since), nil
}
