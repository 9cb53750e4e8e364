package raftgroup_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

// knows says whether a member knows of another one.
func (m *members) knows(who, of string) bool {
	return slices.ContainsFunc(m.groups[who].Servers(), func(s raft.Server) bool { return string(s.ID) == of })
}

// A voter that does not know yet that a copy got a vote is the one whose vote that copy needs: the leader is gone, and nobody
// else has the whole log. It votes for it.
func TestALaggingVoterElectsWhoGotAVoteMeanwhile(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b")
	m.until("c to be a member", func() bool { return m.groups[m.leader("")].AddNonvoter("c", "c", 10*time.Second) == nil })
	m.start("c", nil)
	m.until("all to know c", func() bool { return m.knows("a", "c") && m.knows("b", "c") && m.knows("c", "c") })
	var lead, lags string
	m.until("c to get a vote", func() bool {
		if lags != "" {
			m.net.rejoin(lags) // a busy machine made the leader lose its lead
		}
		lead = m.leader("")
		lags = map[string]string{"a": "b", "b": "a"}[lead]
		if lags == "" {
			return true // c leads: it has a vote
		}
		m.net.isolate(lags)
		return m.groups[lead].AddVoter("c", "c", 10*time.Second) == nil
	})
	m.stop(lead)
	m.net.rejoin(lags)
	m.leader("")
	m.append(m.leader(""), 3, "goes on")
}

// The same where the voter does not even know that the copy exists.
func TestALaggingVoterElectsWhomItDoesNotKnow(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c")
	lead := m.leader("")
	lags, next := m.others(lead)[0], m.others(lead)[1]
	m.net.isolate(lags)
	m.until("d to be a member", func() bool { return m.groups[m.leader(lags)].AddNonvoter("d", "d", 10*time.Second) == nil })
	m.start("d", nil)
	m.net.isolate(lags) // from d too
	m.until("d to get a vote", func() bool { return m.groups[m.leader(lags)].AddVoter("d", "d", 10*time.Second) == nil })
	if m.knows(lags, "d") {
		t.Fatalf("%s, which is cut off, knows d", lags)
	}

	// One entry more, which only d gets: now it is the only one that can lead.
	if now := m.leader(lags); now == next {
		lead, next = next, lead
	}
	m.net.isolate(next)
	last := func(id string) uint64 { i, _ := m.groups[id].Journal().LastIndex(); return i }
	has := last("d")
	go func(g *raftgroup.Group) { _, _ = put(g, 0, "only d gets it") }(m.groups[lead]) // ends with the group
	m.until("d to have more", func() bool {
		_, leads := m.groups[lead].Leader() // not if the machine is very busy
		return last("d") > has || !leads
	})
	m.stop(lead)
	m.net.rejoin(lags)
	m.net.rejoin(next)
	m.leader("")
	m.append(m.leader(""), 3, "goes on")
}

// Who was taken out and has not heard of it is refused, whatever it asks, and ends no leader's term.
func TestWhoWasTakenOutEndsNoTerm(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c", "d")
	m.wantEqual()
	out := m.others(m.leader(""))[0]
	m.net.isolate(out)
	m.until("the removal", func() bool { return m.groups[m.leader(out)].RemoveMember(out, 10*time.Second) == nil })
	m.append(m.leader(out), 1, "behind it")
	m.until("all to know", func() bool {
		for _, id := range m.others(out) {
			if m.knows(id, out) {
				return false
			}
		}
		return true
	})
	m.net.rejoin(out)
	if !m.knows(out, out) {
		t.Fatalf("%s, which was cut off, knows that it was taken out", out)
	}
	asks := m.groups[out].Options().Transport.(*transport.Group)
	index, lastTerm := m.groups[out].Journal().LastEntry()
	for _, id := range m.others(out) {
		m.until("an answer of "+id, func() bool {
			before := m.groups[id].Term()
			var vote raft.RequestVoteResponse
			err := asks.RequestVote(raft.ServerID(id), raft.ServerAddress(id), &raft.RequestVoteRequest{Term: before + 1000, LastLogIndex: index, LastLogTerm: lastTerm, LeadershipTransfer: true}, &vote)
			var pre raft.RequestPreVoteResponse
			if err == nil {
				err = asks.RequestPreVote(raft.ServerID(id), raft.ServerAddress(id), &raft.RequestPreVoteRequest{Term: before + 1000, LastLogIndex: index, LastLogTerm: lastTerm}, &pre)
			}
			if now := m.groups[id].Term(); vote.Granted || pre.Granted || now >= before+1000 {
				t.Fatalf("%s, which was taken out, got a vote of %s: %v, a pre-vote: %v; the term was %d and is %d", out, id, vote.Granted, pre.Granted, before, now)
			}
			return err == nil
		})
	}
}
