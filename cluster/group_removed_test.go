package cluster_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// A leader that is taken out of its group goes on answering: what is appended to it is refused, and it closes.
func TestALeaderThatIsTakenOutAnswersAndCloses(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	var lead string
	m.until("the removal of the leader", func() bool {
		lead = m.leader("")
		return m.groups[lead].RemoveMember(lead, 10*time.Second) == nil
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
