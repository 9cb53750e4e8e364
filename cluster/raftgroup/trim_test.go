package raftgroup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

func (m *members) wantStart(id string, want int64) {
	m.t.Helper()
	if got, _ := m.groups[id].Journal().Bounds(0); got != want {
		m.t.Errorf("at %s partition 0 starts at %d, want %d", id, got, want)
	}
}

// Every leader that answers knows what was deleted before, however soon it came to lead.
func TestDeletedRecordsStayDeletedOverChangesOfLeader(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	m.append(m.leader(""), 60, "x")
	for round := range int64(4) {
		want := 3 * (round + 1)
		var leader string
		m.until("records to be deleted", func() bool {
			leader = m.leader("")
			start, err := m.groups[leader].TrimBefore(0, want)
			return err == nil && start == want
		})
		m.stop(leader)
		next := m.leader("")
		m.until("the next leader to take an append", func() bool {
			_, err := put(m.groups[next], 1, fmt.Sprint("y", round))
			next = m.leader("")
			return err == nil
		})
		m.wantStart(next, want)
		m.start(leader, m.peers)
		m.until("the restarted member to know", func() bool {
			start, _ := m.groups[leader].Journal().Bounds(0)
			return start == want
		})
	}
	m.wantEqual()
	for id := range m.groups {
		m.wantStart(id, 12)
	}
}

// What a leader without a majority was asked to delete is there for everybody, itself included, as long as nobody agreed.
func TestALeaderThatIsCutOffDeletesNothing(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	m.append(m.leader(""), 30, "x")
	m.wantEqual()
	old := m.leader("")
	m.net.isolate(old)
	result := make(chan error, 1)
	go func() {
		_, err := m.groups[old].TrimBefore(0, 5)
		result <- err
	}()
	select {
	case err := <-result:
		if err == nil {
			t.Error("records were deleted without a majority")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no answer from a leader that lost its lead")
	}
	m.wantStart(old, 0)
	m.append(m.leader(old), 3, "y")
	m.net.rejoin(old)
	m.wantEqual()
	for id := range m.groups {
		m.wantStart(id, 0)
	}
}
