package raftgroup_test

import (
	"path/filepath"
	"testing"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// A group of one starts raft at its last segment, which may hold nothing but raft's own entries. What is in the segments
// before can be read as soon as it is open, and appends go on behind it.
func TestAGroupThatIsOnlyOpenedAgainKeepsServingItsRecords(t *testing.T) {
	t.Parallel()
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 4 << 10}}
	segments := func() int {
		all, err := filepath.Glob(filepath.Join(o.Dir, "*.seg"))
		must(t, err)
		return len(all)
	}
	want := 0
	for round := range 3 {
		for began := segments(); segments() < began+2; {
			g := openGroup(t, o)
			if got := values(t, g.Journal(), 3); len(got) != want {
				t.Fatalf("round %d, %d segments: got %q, want %d records", round, segments(), got, want)
			}
			must(t, g.Close())
		}
		g := openGroup(t, o)
		if offset, err := put(g, 3, "value"); err != nil || offset != int64(want) {
			t.Fatalf("got offset %d, %v; want %d", offset, err, want)
		}
		want++
		must(t, g.Close())
	}
}
