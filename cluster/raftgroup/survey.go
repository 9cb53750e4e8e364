package raftgroup

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// survey is what a member in doubt learns of the others. It belongs to the goroutine that asks.
type survey struct {
	m        *member
	answers  map[raft.ServerID]transport.Standing // of the last round
	complete bool                                 // all have answered in it
	before   map[raft.ServerID]uint64             // instances in the round before; nil if it was not complete
	target   transport.Standing                   // of the first leader of its term that answered
}

// round asks all other members at the same time. Those without a vote are asked too: they may have got one in an entry
// that this member does not have.
func (s *survey) round(asker surveyor) {
	s.before = nil
	if s.complete {
		s.before = s.instances()
	}
	servers := s.m.Servers()
	type answer struct {
		of       raft.Server
		standing transport.Standing
		err      error
	}
	all := make(chan answer, len(servers))
	for _, of := range servers {
		if of.ID == raft.ServerID(s.m.o.ID) {
			own, ok := s.m.standing()
			if !ok {
				own.Member = "" // is no answer
			}
			all <- answer{of, own, nil}
			continue
		}
		go func() { // ends with the answer, which the transport bounds; left behind if the member ends before
			st, err := asker.AskStanding(of.ID, of.Address)
			all <- answer{of, st, err}
		}()
	}
	s.answers = map[raft.ServerID]transport.Standing{}
	var lacks []string
	for range servers {
		select {
		case <-s.m.stopping:
			s.complete = false
			return
		case a := <-all:
			if a.err != nil || a.standing.Member != a.of.ID {
				lacks = append(lacks, fmt.Sprintf("node %s", a.of.Address))
				continue
			}
			s.answers[a.of.ID] = a.standing
		}
	}
	s.complete = len(servers) > 0 && len(lacks) == 0
	slices.Sort(lacks)
	s.m.doubts.mu.Lock()
	defer s.m.doubts.mu.Unlock()
	s.m.doubts.lacks = lacks
}

func (s *survey) instances() map[raft.ServerID]uint64 {
	all := map[raft.ServerID]uint64{}
	for id, a := range s.answers {
		all[id] = a.Instance
	}
	return all
}

// floor is how far the furthest log of all members goes, if all have answered twice. None of them was started anew
// between the rounds, so there was a moment at which each had what it answered with in the second, or less: nobody lost
// anything that another had handed on while they were asked one after the other.
func (s *survey) floor() (furthest reach, ok bool) {
	if !s.complete || !maps.Equal(s.before, s.instances()) {
		return furthest, false
	}
	for _, a := range s.answers {
		if r := (reach{a.LastTerm, a.Index}); r.compare(furthest) > 0 {
			furthest = r
		}
	}
	return furthest, true
}

// caughtUp says whether the member has all that a leader had when it answered. The leader is of this member's term or a
// later one, so it has what was promised in earlier ones, and what this member acknowledged to it in its own.
func (s *survey) caughtUp() bool {
	for _, a := range s.answers {
		// A target that is set stays: under load this member is always a little behind what was answered last.
		if a.Leads && a.Term >= s.m.Term() && a.Term > s.target.Term {
			s.target = a
		}
	}
	if s.target.Term == 0 {
		return false
	}
	last, _ := s.m.journal.LastEntry()
	if last < s.target.Index {
		return false
	}
	if first, err := s.m.journal.FirstIndex(); err != nil || first == 0 || s.target.Index < first {
		return err == nil // retention has removed it, which it does with what is committed, or a leader's state came in its place
	}
	// Logs with one entry in common are the same up to there.
	var l raft.Log
	return s.m.journal.GetLog(s.target.Index, &l) == nil && l.Term == s.target.LastTerm
}

// leaderless says whether no leader is known.
func (s *survey) leaderless() bool {
	for _, a := range s.answers {
		if a.Leads {
			return false
		}
	}
	id, _ := s.m.Leader()
	return id == ""
}

// doubtful are the members that are in doubt.
func (s *survey) doubtful() (ids []string) {
	for id, a := range s.answers {
		if a.Doubt {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}
