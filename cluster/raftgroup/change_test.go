package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// The copy of a member that was taken out is deleted once its group does not count on it any more: not while the leader alone
// has taken it out, as the others may elect one that has not.
func TestMembersThatOnlyTheLeaderKnowsAreNotSettled(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c")
	leader := m.leader("")
	g, out := m.groups[leader], m.others(leader)[0]
	m.until("members to be settled", func() bool { return g.Settled() == nil })
	m.net.isolate(leader)
	if err := g.RemoveMember(out, 10*time.Second); err == nil {
		t.Fatal("a leader that nobody hears took a member out")
	}
	if err := g.Settled(); err == nil {
		t.Errorf("members %v are settled, though no other member knows of them", g.Servers())
	}
	m.net.rejoin(leader)
	m.until("members to be settled", func() bool { return m.groups[m.leader("")].Settled() == nil })
}
