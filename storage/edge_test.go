package storage_test

import (
	"fmt"
	"testing"

	"github.com/daybook-data/daybook/storage"
)

// A replica that catches up has sealed segments that are committed only in part. What can be read of them does not depend on
// which indexes happen to be in memory: the end is exact, never goes back, and all below it can be read.
func TestTheEndIsExactWhereASealedSegmentIsCommittedInPart(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10, IndexCache: 1}
	const entries = 60
	dir := t.TempDir()
	l := openLog(t, dir, o)
	for i := range entries {
		if err := l.store(&storage.Batch{Partition: uint32(i % 2), Data: plain(fmt.Sprintf("entry-%04d-%0200d", i, 0), 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(files(t, dir, ".seg")); n < 5 {
		t.Fatalf("%d segments, want some", n)
	}
	check := func(l *log, committed int) {
		t.Helper()
		for partition := range uint32(2) {
			want := int64(committed+1-int(partition)) / 2
			for range 2 { // the first time brings other segments' indexes into memory
				if _, end := l.Bounds(partition); end != want {
					t.Fatalf("%d entries are committed: partition %d ends at %d, want %d", committed, partition, end, want)
				}
				if got := offsets(l.contents(partition)); int64(len(got)) != want {
					t.Fatalf("%d entries are committed: partition %d has %d batches, want %d", committed, partition, len(got), want)
				}
			}
		}
	}
	for i := range entries {
		l.Commit(uint64(i + 1))
		check(l, i+1)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := storage.Open(dir, o) // no index is in memory then
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	signals := make(chan struct{}, 1)
	defer j.Notify(signals, 0, 1)()
	for i := range entries {
		j.Commit(uint64(i + 1))
		select {
		case <-signals:
		default:
			t.Fatalf("nobody is told of entry %d", i+1)
		}
		check(&log{t: t, dir: dir, opts: o, Journal: j, term: 1}, i+1)
	}
}
