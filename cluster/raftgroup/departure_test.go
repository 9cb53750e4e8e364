package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// The entry that takes a member out gets no further than to the leader and to this member; then the leader is gone with it. The
// others need the vote of the one that was to go, which it can give as it does not have the entry.
func TestWhoIsTakenOutVotesUntilThatIsCommitted(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c", "d")
	m.wantEqual()
	lead := m.leader("")
	rest := m.others(lead)
	goes, rest := rest[0], rest[1:]
	for _, id := range rest {
		m.net.isolate(id)
	}
	if err := m.groups[lead].RemoveMember(goes, 10*time.Second); err == nil {
		t.Fatal("a member was taken out with most of the others cut off")
	}
	m.stop(lead)
	for _, id := range rest {
		m.net.rejoin(id)
	}
	m.append(m.leader(""), 3, "goes on")
}
