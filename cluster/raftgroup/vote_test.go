package raftgroup_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// A copy that does not know yet that it is a member votes for nobody, so it counts as no voter before it does: else the others
// might need its vote to elect the leader from whom it would learn it.
func TestACopyGetsAVoteWhenItKnowsThatItIsAMember(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c")
	m.until("d to be a member", func() bool { return m.groups[m.leader("")].AddNonvoter("d", "d", 10*time.Second) == nil })
	if err := m.groups[m.leader("")].AddVoter("d", "d", 10*time.Second); err == nil {
		t.Error("d, which was never there, got a vote")
	}
	m.start("d", nil)
	m.until("d to get a vote", func() bool { return m.groups[m.leader("")].AddVoter("d", "d", 10*time.Second) == nil })
	if !m.groups[m.leader("")].HasVoter("d") {
		t.Error("d has no vote")
	}
	if own := m.groups["d"].Servers(); !slices.ContainsFunc(own, func(s raft.Server) bool { return s.ID == "d" }) {
		t.Errorf("d has a vote and knows the members %v", own)
	}
}
