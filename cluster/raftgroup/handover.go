package raftgroup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// heirPause is how long HandOver waits before it looks again who has nearly everything.
const heirPause = 20 * time.Millisecond

var errNoHeir = errors.New("no other member that votes has nearly all that the leader has")

// HandTo hands the lead to a member that votes and has nearly everything, and returns when it was elected or cannot be.
// Appends are refused with ErrNotLeader meanwhile. Raft would tell any other to stand too, which ends this leader's term and
// gives no other. Only the leader can.
func (m *member) HandTo(id raft.ServerID, address raft.ServerAddress) error {
	if !m.HasVoter(id) || !m.Near(id) {
		return fmt.Errorf("the copy of node %s has no vote yet, or not all of the journal", address)
	}
	term, last := m.raft.CurrentTerm(), m.raft.LastIndex()
	if has, _ := m.Acked(id); !m.failedHandOvers.may(id, term, has) {
		return fmt.Errorf("the copy of node %s has not got on since the lead was to be handed to it before", address)
	}
	err := m.await(m.raft.LeadershipTransferToServer(id, address))
	if err != nil {
		m.failedHandOvers.failed(id, term, last)
	}
	return appendErr(err)
}

// HandOver hands the lead to whoever has most of those that may have it, nil for any, and to the next where that fails. While
// none has nearly everything it waits, for an election timeout. Raft's own choice goes by what it has sent, to members that
// are gone as well. Only the leader can.
func (m *member) HandOver(may func(raft.Server) bool) error {
	for end := time.Now().Add(m.o.Timeout); ; {
		if !m.Leads() {
			return ErrNotLeader
		}
		err := m.handToAny(may)
		if err == nil || !time.Now().Before(end) {
			return err
		}
		select {
		case <-m.done:
			return m.ClosedErr()
		case <-time.After(heirPause):
		}
	}
}

// handToAny tries each heir once.
func (m *member) handToAny(may func(raft.Server) bool) error {
	errs := []error{errNoHeir}
	for _, heir := range m.heirs(may) {
		err := m.HandTo(heir.ID, heir.Address)
		if err == nil || !m.Leads() { // lost to somebody else meanwhile: nothing is left to hand over
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// heirs are the members that may lead in place of this one, who has most first.
func (m *member) heirs(may func(raft.Server) bool) (all []raft.Server) {
	has := map[raft.ServerID]uint64{}
	for _, s := range m.Servers() {
		if s.ID != raft.ServerID(m.o.ID) && s.Suffrage == raft.Voter && (may == nil || may(s)) && m.Near(s.ID) {
			has[s.ID], _ = m.Acked(s.ID)
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b raft.Server) int { return cmp.Compare(has[b.ID], has[a.ID]) })
	return all
}
