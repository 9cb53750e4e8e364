package raftgroup

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// Servers are the members, as far as this one knows. They are raft's own: nobody may change the slice.
func (m *member) Servers() []raft.Server {
	r := m.started.Load()
	if r == nil {
		return nil
	}
	return r.GetConfiguration().Configuration().Servers
}

// AddVoter makes another member a voter, or adds it as one. Only the leader can. A member gets its vote once it has what the
// leader has when it is asked: the error says so if that takes more than an election timeout.
func (m *member) AddVoter(id, address string, timeout time.Duration) error {
	if err := m.awaitMember(raft.ServerID(id)); err != nil {
		return err
	}
	return appendErr(m.await(m.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, timeout)))
}

// awaitMember waits until a member that has no vote knows that it is a member. It votes for nobody before, and learns it from
// a leader alone: with a second voter that waits for a leader nobody might be elected any more.
func (m *member) awaitMember(id raft.ServerID) error {
	servers := m.Servers()
	if Votes(servers, id) || !slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == id }) {
		return nil
	}
	last := m.raft.LastIndex() // the entry that made it a member is not behind that
	for end := time.Now().Add(m.o.Timeout); ; {
		has, _ := m.Acked(id)
		switch {
		case !m.Leads():
			return ErrNotLeader
		case has >= last:
			return nil
		case !time.Now().Before(end):
			return fmt.Errorf("copy %s gets no vote yet: it has the entries up to %d of %d", id, has, last)
		}
		select {
		case <-m.done:
			return m.ClosedErr()
		case <-time.After(heirPause):
		}
	}
}

// AddNonvoter adds a member that gets the log and has no vote. A voter stays one. Only the leader can.
func (m *member) AddNonvoter(id, address string, timeout time.Duration) error {
	return appendErr(m.await(m.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, timeout)))
}

// DemoteVoter takes a member's vote. Only the leader can.
func (m *member) DemoteVoter(id string, timeout time.Duration) error {
	return m.depart(raft.ServerID(id), func(id raft.ServerID) raft.Future { return m.raft.DemoteVoter(id, 0, timeout) })
}

// RemoveMember takes a member out. Only the leader can.
func (m *member) RemoveMember(id string, timeout time.Duration) error {
	return m.depart(raft.ServerID(id), func(id raft.ServerID) raft.Future { return m.raft.RemoveServer(id, 0, timeout) })
}

// departer is a transport that keeps from a member the entry that takes its vote, until that is committed.
type departer interface {
	Depart(id raft.ServerID) (over func(committed bool))
}

var _ departer = (*transport.Group)(nil)

// depart takes a member's vote.
func (m *member) depart(id raft.ServerID, take func(raft.ServerID) raft.Future) error {
	over := func(bool) {}
	if t, ok := m.o.Transport.(departer); ok {
		over = t.Depart(id)
	}
	err := m.await(take(id))
	over(err == nil)
	return appendErr(err)
}

// HasVoter says whether a member votes in the group.
func (m *member) HasVoter(id raft.ServerID) bool {
	return Votes(m.Servers(), id)
}

// Votes says whether a member is a voter among these.
func Votes(servers []raft.Server, id raft.ServerID) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter })
}

// NearEntries is how many entries behind a member may be that gets a vote: what is on its way at a time.
const NearEntries = maxAppendEntries

// Near says whether a member has nearly all that this one, its leader, has, and gets on.
func (m *member) Near(id raft.ServerID) bool {
	has, ok := m.Acked(id)
	last := m.raft.LastIndex()
	return ok && has+NearEntries >= last && m.progress.moves(string(id), has, last, m.o.Timeout)
}

// Acked is the last entry that a member is known to have by this one, its leader.
func (m *member) Acked(id raft.ServerID) (entry uint64, ok bool) {
	g, ok := m.o.Transport.(interface {
		Acked(member raft.ServerID) (uint64, bool)
	})
	if !ok {
		return 0, false
	}
	return g.Acked(id)
}

// Settled returns nil once the group's members, as this leader has them now, are those of a committed entry. Raft 1.8.0 does
// not say of which entry they are, so one is put behind it that waits to be committed: ask only when it matters.
func (m *member) Settled() error { return appendErr(m.await(m.raft.Barrier(m.o.Timeout))) }

// await waits for what raft promised, or for its end: what is in raft's queue when it is shut down it never answers.
func (m *member) await(f raft.Future) error {
	answered := make(chan error, 1)
	go func() { answered <- f.Error() }() // ends with the answer; left behind, with nothing to do, if none comes
	select {
	case err := <-answered:
		return err
	case <-m.done:
	}
	select {
	case err := <-answered: // raft answers what it has begun before it ends
		return err
	default:
		return raft.ErrRaftShutdown
	}
}
