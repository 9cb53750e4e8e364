package raftgroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Damage in a log of commands and in its snapshots is found without being met, and is not needed at the next start.
func TestDamageInALogOfCommandsIsFoundAndOutlived(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := raftgroup.Options{Dir: dir, Journal: storage.Options{SegmentBytes: 4 << 10}}
	g, _ := openFSM(t, o)
	const commands = 200
	for i := range commands {
		apply(t, g, fmt.Sprint("command ", i))
		if i == 20 {
			must(t, g.Snapshot())
		}
	}
	pace := func(int) error { return nil }
	if found, err := g.Check(pace); found != 0 || err != nil {
		t.Fatalf("of a sound log it says %d, %v", found, err)
	}
	flip := func(pattern string, n int) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		slices.Sort(paths)
		b, err := os.ReadFile(paths[n])
		must(t, err)
		b[66] ^= 1 // in what the first frame, or the snapshot, carries
		must(t, os.WriteFile(paths[n], b, 0o644))
	}
	flip("*.seg", 2)
	flip("snapshots/*.snap", 0)
	if found, err := g.Check(pace); found != 1 || err != nil {
		t.Errorf("found %d damaged segments, %v; want 1", found, err)
	}
	if found, err := g.Check(pace); found != 0 || err != nil {
		t.Errorf("the same damage is told again: %d, %v", found, err)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "snapshots/*.damaged")); len(aside) != 1 {
		t.Errorf("%d snapshots are set aside, want 1", len(aside))
	}
	must(t, g.Close())
	_, c := openFSM(t, o)
	for i := range commands {
		if got := c.of(fmt.Sprint("command ", i)); got != 1 {
			t.Fatalf("command %d took effect %d times", i, got)
		}
	}
}
