package metadata

import (
	"errors"
	"testing"
)

// A coordinator that was replaced deletes nothing more.
func TestDeletionsOfAFormerCoordinatorHaveNoEffect(t *testing.T) {
	m, s := filled(t)
	p := StreamPartition{Stream: s.ID, Partition: 1}
	gone := GroupOffset{Stream: p.Stream, Partition: p.Partition}
	deletions := func(term uint64) []Command {
		return []Command{
			{DeleteOffsets: &DeleteOffsets{Group: "g", Partitions: []GroupOffset{gone}, Term: term}},
			{DeleteGroup: &DeleteGroup{Group: "g", Term: term}},
		}
	}
	for _, c := range deletions(4) {
		if r := m.applyOne(c, 5); !errors.Is(r.Err, ErrNotCoordinator) {
			t.Errorf("in the next term: %v, want ErrNotCoordinator", r.Err)
		}
		if o, ok, _ := m.GroupOffset("g", p); !ok || o.Offset != 7 {
			t.Fatalf("the offset is %+v, %v", o, ok)
		}
	}
	for _, c := range deletions(5) {
		if r := m.applyOne(c, 5); r.Err != nil {
			t.Errorf("in its term: %v", r.Err)
		}
	}
	if _, ok, _ := m.GroupOffset("g", p); ok {
		t.Error("the offset is still there")
	}
}
