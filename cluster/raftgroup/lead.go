package raftgroup

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// leaderlessTimeouts is for how many election timeouts a group may hear no leader before it counts as not served: it is
// longer than an election takes.
const leaderlessTimeouts = 3

// Term is raft's current term, which is the leader epoch of what is appended in it.
func (m *member) Term() uint64 {
	if m.mirrors() {
		return m.journal.LastTerm()
	}
	return m.raft.CurrentTerm()
}

// Leader returns the id of the leader, "" if none is known, and whether it is this member.
func (m *member) Leader() (id string, self bool) {
	_, leader := m.raft.LeaderWithID()
	return string(leader), m.Leads()
}

// LeaderAddress is where the leader is, "" if none is known.
func (m *member) LeaderAddress() raft.ServerAddress {
	address, _ := m.raft.LeaderWithID()
	return address
}

// Leads says whether this member was elected and has not heard of another leader. What it knows may be old; see Verify.
func (m *member) Leads() bool { return m.raft.State() == raft.Leader }

// candidacy says whether this member is a candidate, and in which term.
func (m *member) candidacy() (term uint64, ok bool) {
	r := m.started.Load()
	if r == nil || r.State() != raft.Candidate {
		return 0, false
	}
	return r.CurrentTerm(), true
}

// LeadChanged says whether this member leads whenever that has changed; several changes can come as one.
func (m *member) LeadChanged() <-chan bool { return m.raft.LeaderCh() }

// Leaderless is for how long the group has heard no leader, in whole seconds; 0 while it has one, and while it may be
// electing one.
func (m *member) Leaderless() time.Duration {
	if m.alone != nil || m.mirrors() {
		return 0
	}
	if id, _ := m.Leader(); id != "" {
		return 0
	}
	since := m.raft.LastContact() // a leader that steps down sets it, too
	if since.Before(m.began) {
		since = m.began
	}
	if d := time.Since(since); d > leaderlessTimeouts*m.o.Timeout {
		return max(d.Truncate(time.Second), time.Second)
	}
	return 0
}

// LastContact is when the member heard a leader last, the zero time if never.
func (m *member) LastContact() time.Time { return m.raft.LastContact() }

// WaitLeader waits until the group has a leader, whoever it is.
func (m *member) WaitLeader(ctx context.Context) error {
	changes := make(chan raft.Observation, 16)
	o := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	m.raft.RegisterObserver(o)
	defer m.raft.DeregisterObserver(o)
	for {
		if id, _ := m.Leader(); id != "" {
			return nil
		}
		select {
		case <-changes:
		case <-m.done:
			return m.ClosedErr()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
