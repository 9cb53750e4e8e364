package raftgroup_test

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// A leader that is told to hand over does not go by what it has sent: of two members the one that cannot be reached has been
// sent everything, too, and comes first in the group.
func TestTheLeadGoesToAMemberThatHasEverything(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 2*time.Second, storage.Options{}, "a", "b", "c")
	m.leader("")
	m.lead("c")
	m.net.isolate("a")
	m.append("c", 3, "x")
	m.until("b to lead, to which alone the lead can be handed", func() bool {
		if m.groups["c"].Leads() {
			if err := m.groups["c"].HandOver(nil); err != nil {
				t.Log("b may not have acknowledged everything yet, or was too slow:", err)
			}
		}
		return m.groups["b"].Leads()
	})
	m.net.rejoin("a")
	m.wantEqual()
}

// A leader hands over to nobody but who may have the lead, and says so if there is nobody.
func TestTheLeadGoesOnlyToWhoMayHaveIt(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 2*time.Second, storage.Options{}, "a", "b", "c")
	m.leader("")
	m.lead("a")
	none := func(raft.Server) bool { return false }
	if err := m.groups["a"].HandOver(none); err == nil && m.groups["a"].Leads() {
		t.Error("nobody may have the lead, and it was handed over")
	}
	m.lead("a")
	m.until("c to lead, which alone may", func() bool {
		if m.groups["a"].Leads() {
			_ = m.groups["a"].HandOver(func(s raft.Server) bool { return s.ID == "c" }) // tried again
		} else if !m.groups["c"].Leads() {
			m.lead("a")
		}
		return m.groups["c"].Leads()
	})
	if err := m.groups["b"].HandOver(nil); err != raftgroup.ErrNotLeader && !m.groups["b"].Leads() {
		t.Errorf("a follower that hands over gets %v", err)
	}
}

// lead has a member lead, whoever does.
func (m *members) lead(id string) {
	m.t.Helper()
	m.until(id+" to lead", func() bool {
		for other, g := range m.groups {
			if other != id && g.Leads() {
				_ = g.HandTo(raft.ServerID(id), raft.ServerAddress(id)) // tried again
			}
		}
		return m.groups[id].Leads()
	})
}
