package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// Followers show what is committed though raft itself would tell them in an hour.
func TestFollowersHearWhatIsCommittedWithoutTheNextEntry(t *testing.T) {
	t.Parallel()
	m := prepareMembers(t, time.Second, storage.Options{}, "a", "b", "c")
	m.commitEvery = time.Hour
	for _, id := range []string{"a", "b", "c"} {
		m.start(id, m.peers)
	}
	for want := int64(1); want <= 5; want++ {
		m.until("an append", func() bool {
			_, err := put(m.groups[m.leader("")], 0, "value")
			return err == nil
		})
		m.until("all members show it", func() bool {
			for _, g := range m.groups {
				if _, high := g.Journal().Bounds(0); high < want {
					return false
				}
			}
			return true
		})
	}
}
