package cluster

import (
	"errors"
	"testing"
)

// A coordinator that was replaced deletes nothing more.
func TestDeletionsOfAFormerCoordinatorHaveNoEffect(t *testing.T) {
	m, s := filled(t)
	p := StreamPartition{Stream: s.ID, Partition: 1}
	gone := GroupOffset{Stream: p.Stream, Partition: p.Partition}
	deletions := func(term uint64) []command {
		return []command{
			{DeleteOffsets: &deleteOffsets{Group: "g", Partitions: []GroupOffset{gone}, Term: term}},
			{DeleteGroup: &deleteGroup{Group: "g", Term: term}},
		}
	}
	for _, c := range deletions(4) {
		if r := m.applyOne(c, 5); !errors.Is(r.err, ErrNotCoordinator) {
			t.Errorf("in the next term: %v, want ErrNotCoordinator", r.err)
		}
		if o, ok, _ := m.GroupOffset("g", p); !ok || o.Offset != 7 {
			t.Fatalf("the offset is %+v, %v", o, ok)
		}
	}
	for _, c := range deletions(5) {
		if r := m.applyOne(c, 5); r.err != nil {
			t.Errorf("in its term: %v", r.err)
		}
	}
	if _, ok, _ := m.GroupOffset("g", p); ok {
		t.Error("the offset is still there")
	}
}
