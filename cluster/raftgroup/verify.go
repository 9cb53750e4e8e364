package raftgroup

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Verify returns nil if this member leads, and most voters have said since the call began that they know of no later term:
// until then nobody else can have been elected, so whatever any leader had acknowledged when the call began is this one's to
// know. The error is ErrNotLeader otherwise.
//
// Raft's own check is no such thing. It counts the answers to what was sent before it was asked, and those may be from
// before somebody else was elected.
func (m *member) Verify() error {
	term := m.raft.CurrentTerm()
	if !m.Leads() {
		return ErrNotLeader
	}
	if err := m.askVoters(term); err != nil {
		return err
	}
	if !m.Leads() || m.raft.CurrentTerm() != term {
		return ErrNotLeader
	}
	return nil
}

// askVoters returns nil once most voters, of which this member may be one, have said that they know of no term after this.
func (m *member) askVoters(term uint64) error {
	voters, agreed := 0, 0
	var others []raft.Server
	for _, s := range m.Servers() {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == raft.ServerID(m.o.ID):
			voters, agreed = voters+1, agreed+1
		default:
			voters++
			others = append(others, s)
		}
	}
	asker, ok := m.o.Transport.(surveyor)
	if !ok && len(others) > 0 {
		return fmt.Errorf("%w, as far as its transport can ask", ErrNotLeader)
	}
	answers := make(chan bool, len(others))
	for _, of := range others {
		go func() { // ends with the answer, which the transport bounds
			st, err := asker.AskStanding(of.ID, of.Address)
			answers <- err == nil && st.Member == of.ID && st.Term <= term
		}()
	}
	for left := len(others); agreed <= voters/2; left-- {
		if left == 0 {
			return fmt.Errorf("%w: of %d members that vote %d have confirmed it", ErrNotLeader, voters, agreed)
		}
		select {
		case yes := <-answers:
			if yes {
				agreed++
			}
		case <-m.done:
			return m.ClosedErr()
		}
	}
	return nil
}
