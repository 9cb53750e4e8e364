package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// A leader that is taken out of its group goes on answering: what is appended to it is refused, and it closes.
func TestALeaderThatIsTakenOutAnswersAndCloses(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 4*time.Second, storage.Options{}, "a", "b", "c")
	lead := m.leader("")
	m.until("the removal of the leader", func() bool { // by itself, unless a busy machine made it lose the lead
		return m.groups[m.leader("")].RemoveMember(lead, 10*time.Second) == nil
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 50 { // raft, had it ended, would refuse about half of them, and never answer the others
			_, _ = put(m.groups[lead], 0, "too late")
		}
		m.stop(lead)
	}()
	select {
	case <-over:
	case <-time.After(60 * time.Second):
		t.Fatal("an append is not answered, or the group does not close")
	}
	m.append(m.leader(""), 3, "goes on")
	m.wantEqual()
}
