package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// A group that shrinks to one member while it is used shows nothing from then on that this one could lose, and everything
// again once there are more.
func TestAGroupShrunkToOneShowsOnlyWhatIsFlushed(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{Mode: storage.Replicated, FlushEvery: time.Hour}, "a", "b", "c")
	leader := m.leader("")
	g := m.groups[leader]
	end := func() int64 { _, end := g.Journal().Bounds(0); return end }
	put := func() int64 {
		t.Helper()
		b := &storage.Batch{Data: storagetest.Batch("x")}
		must(t, g.AppendWait(t.Context(), []*storage.Batch{b}))
		return b.Offset + 1
	}
	first := put()
	m.until("a record to be shown that is flushed nowhere", func() bool { return end() == first })
	for _, other := range m.others(leader) {
		before := end()
		must(t, g.RemoveMember(other, 10*time.Second))
		if now := end(); now < before {
			t.Fatalf("%d records are shown, it were %d", now, before)
		}
		m.stop(other)
	}
	shown := end()
	last := put()
	if now := end(); now != shown {
		t.Errorf("%d records are shown, want %d: the only copy of the others is in memory", now, shown)
	}
	must(t, g.Journal().Flush())
	if now := end(); now != last {
		t.Errorf("%d records are shown, want %d: all are flushed", now, last)
	}
	last = put()
	other := m.others(leader)
	if len(other) > 0 {
		t.Fatalf("%v are left", other)
	}
	m.start("d", nil)
	must(t, g.AddVoter("d", "d", 10*time.Second))
	m.until("all to be shown", func() bool { return end() >= last })
}
