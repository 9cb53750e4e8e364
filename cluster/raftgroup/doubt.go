package raftgroup

import (
	"bytes"
	"cmp"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A member is in doubt while its journal is: what it acknowledged before its machine lost power may be gone, so its vote
// could make somebody leader who lacks what was promised. It takes entries, and its acknowledgements count, but it
// votes for nobody, itself included, until it knows what its vote is worth. It asks all voters what they have, and learns
// it in one of two ways:
//
//   - A leader of its term or a later one was elected without it, so it has all that was ever promised; once this member
//     has what that leader had when it answered, it has all it had acknowledged, and its doubt is over.
//   - If every voter has answered, what any of them still has is in the log that goes furthest (the last entry's term
//     counts first). Less than that log it votes for never again; that much it may vote for, since what is not in it is lost
//     on all machines. So a group goes on by itself when all of its machines had lost power, and loses nothing more. A
//     member whose whole log was given up as damaged may not know who the voters are: it waits for a leader.
//
// docs/decisions/20261130-rejoin-as-learner.md has the argument.
type doubts struct {
	in    atomic.Bool
	stuck atomic.Bool // there has been no leader for long
	mu    sync.Mutex  // guards all below
	floor *reach      // how far the furthest log of all voters goes; nil: not known
	lacks []string    // voters that did not answer in the last round
}

// reach is how far a log goes.
type reach struct{ term, index uint64 }

func (r reach) compare(o reach) int {
	return cmp.Or(cmp.Compare(r.term, o.term), cmp.Compare(r.index, o.index))
}

const (
	// leastDoubt and mostDoubt are how long a member in doubt waits between its rounds of questions.
	leastDoubt = 100 * time.Millisecond
	mostDoubt  = time.Second
	// doubtToldAfter is when an operator is told that a group can't elect a leader because of members in doubt.
	doubtToldAfter = 10 * time.Second
)

// surveyor is a transport over which members in doubt learn what others have: transport.Group, or one like it.
type surveyor interface {
	Elect(transport.Elector)
	AskStanding(id raft.ServerID, target raft.ServerAddress) (transport.Standing, error)
}

var _ surveyor = (*transport.Group)(nil)

// errInDoubt refuses a vote. Raft takes that for an election that is lost.
var errInDoubt = errors.New("this member may lack entries that it had acknowledged: it does not vote until it knows")

// mayVote says whether the member may vote for one whose log ends with such an entry.
func (m *member) mayVote(index, term uint64) bool {
	if m.outcast != nil {
		return false
	}
	if !m.doubts.in.Load() {
		return true
	}
	m.doubts.mu.Lock()
	defer m.doubts.mu.Unlock()
	return m.doubts.floor != nil && reach{term, index}.compare(*m.doubts.floor) >= 0
}

// mayRecordVote is the last guard: whichever way raft came to vote, a member in doubt that does not know what its vote is
// worth records none.
func (m *member) mayRecordVote() bool {
	if m.outcast != nil {
		return false
	}
	if !m.doubts.in.Load() {
		return true
	}
	m.doubts.mu.Lock()
	defer m.doubts.mu.Unlock()
	return m.doubts.floor != nil
}

// isVote says whether raft stores a vote under the key.
func isVote(key []byte) bool {
	return bytes.Equal(key, []byte("LastVoteTerm")) || bytes.Equal(key, []byte("LastVoteCand"))
}

// standing is what this member has.
func (m *member) standing() (s transport.Standing, ok bool) {
	r := m.started.Load()
	if r == nil {
		return s, false
	}
	s = transport.Standing{Member: raft.ServerID(m.o.ID), Doubt: m.doubts.in.Load(), Term: r.CurrentTerm()}
	leads := r.State() == raft.Leader
	s.Index, s.LastTerm = m.journal.LastEntry()
	s.Leads = leads && r.State() == raft.Leader && r.CurrentTerm() == s.Term // all the while
	return s, true
}

// resolveDoubt asks until the member's doubt is over, or the member ends.
func (m *member) resolveDoubt() {
	log := m.o.Logger.With("dir", m.o.Dir)
	if m.journal.Forgot() {
		log.Warn("a log was damaged and given up: it is filled again, and votes when it has what a leader has")
	} else {
		log.Warn("a copy of a journal may lack records that it acknowledged before its machine was started anew: it takes records, and votes again when it has what a leader has")
	}
	asker, ok := m.o.Transport.(surveyor)
	if !ok {
		return // nobody can be asked: it never votes
	}
	s := survey{m: m}
	told := false
	for wait, since := leastDoubt, time.Now(); ; wait = min(2*wait, mostDoubt) {
		s.round(asker)
		if s.caughtUp() {
			if err := m.endDoubt(); err == nil { // else the journal has failed, which watch tells
				log.Info("a copy of a journal has what its leader has, and votes again")
			}
			return
		}
		if r, ok := s.floor(); ok && !m.journal.Forgot() && m.setFloor(r) && s.leaderless() {
			log.Warn("all copies of a journal were asked after machines had lost their power, and the most complete one may lead: records that were acknowledged in the moment before the power failed and that no copy has are lost",
				"in_doubt", s.doubtful(), "last_entry", r.index, "of_term", r.term)
		}
		stuck := time.Since(since) > doubtToldAfter && s.leaderless()
		m.doubts.stuck.Store(stuck)
		if stuck && !told {
			log.Error("a journal has no leader and can elect none", "reason", m.Doubt())
		}
		told = stuck
		select {
		case <-m.stopping:
			return
		case <-m.done:
			return
		case <-time.After(wait):
		}
	}
}

func (m *member) setFloor(r reach) (news bool) {
	m.doubts.mu.Lock()
	defer m.doubts.mu.Unlock()
	if m.doubts.floor != nil {
		return false // what it was is enough, and binds least
	}
	m.doubts.floor = &r
	return true
}

// endDoubt ends the doubt for good.
func (m *member) endDoubt() error {
	if err := m.journal.EndDoubt(); err != nil {
		return err
	}
	m.doubts.in.Store(false)
	m.doubts.stuck.Store(false)
	return nil
}

// Doubt says that the member is in doubt and what it waits for; "" if it is not.
func (m *member) Doubt() string {
	if !m.doubts.in.Load() {
		return ""
	}
	m.doubts.mu.Lock()
	lacks, known := m.doubts.lacks, m.doubts.floor != nil
	m.doubts.mu.Unlock()
	why := "its machine was started anew before all it had acknowledged was on its disk: it has no vote until it has what a leader has"
	switch {
	case m.journal.Forgot():
		return "its log was damaged and given up: it has no vote until it has what a leader has, whom a majority without it has to elect: start what is missing" +
			"; if that is gone for good, `daybook cluster recover` makes a cluster of what is left"
	case known:
		return why + "; all voters were asked, and it votes for the most complete copy"
	case len(lacks) > 0:
		return why + ", or until every other copy has answered: start what is missing (" + strings.Join(lacks, ", ") +
			"); if that is gone for good, `daybook cluster recover` makes a cluster of what is left"
	}
	return why
}

// Stuck says why the group has no leader, if that is because of members in doubt; "" else.
func (m *member) Stuck() string {
	if !m.doubts.stuck.Load() {
		return ""
	}
	return m.Doubt()
}
