package storage_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// preparedOptions are of a journal whose clock lets it prepare blocks all the time.
func preparedOptions(fsys vfs.FS, mode storage.Mode) storage.Options {
	var ticks atomic.Int64
	return storage.Options{
		FS: fsys, Mode: mode, SegmentBytes: 2 << 20, Retention: storage.Retention{Bytes: 6 << 20},
		Now: func() time.Time { return time.Unix(1_700_000_000+ticks.Add(1), 0) },
	}
}

// Blocks that are made ready ahead never touch what frames are written to, through rolls, cuts of the end, and retention.
func TestBlocksMadeAheadHoldNothing(t *testing.T) {
	t.Run("durable", func(t *testing.T) { blocksMadeAhead(t, storage.Durable, vfs.OpWrite) })
	t.Run("replicated", func(t *testing.T) { blocksMadeAhead(t, storage.Replicated, vfs.OpAllocate) })
}

func blocksMadeAhead(t *testing.T, mode storage.Mode, by vfs.Op) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	var ahead atomic.Int64
	fsys.Before = func(op vfs.Op, name string) {
		if op == by && strings.Contains(name, "spare-") {
			ahead.Add(1)
		}
	}
	l := openLog(t, t.TempDir(), preparedOptions(fsys, mode))
	var want []byte
	value := strings.Repeat("v", 20<<10)
	for i := range 700 {
		data := batch(batchSpec{values: []string{fmt.Sprint(i, value)}})
		l.put(0, data)
		want = append(want, data...)
		if i%50 == 49 {
			keep := l.last()
			for range 5 {
				must(t, l.store(&storage.Batch{Data: plain("uncommitted", 2)}))
			}
			must(t, l.DeleteRange(keep+1, l.last()))
			_, err := l.Retain()
			must(t, err)
		}
	}
	for range 2 {
		if got := l.contents(0); len(got) < 4<<20 || !bytes.HasSuffix(want, got) {
			t.Fatalf("%d bytes are left, not the end of what was written", len(got))
		}
		l = openLog(t, l.crash(), preparedOptions(fsys, mode))
	}
	must(t, l.Close())
	verifyClean(t, l.dir)
	if ahead.Load() == 0 {
		t.Error("no file was made ahead")
	}
}

// A disk without room for blocks ahead still takes what fits; one that fails under them ends the journal, as the sync
// that failed may have been that of frames.
func TestBlocksAheadThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault vfs.Fault
		ends  bool
	}{
		{vfs.Fault{Op: vfs.OpWrite, Name: "spare-", Keep: true}, false},
		{vfs.Fault{Op: vfs.OpSync, Name: "spare-", Keep: true}, false},
		{vfs.Fault{Op: vfs.OpAllocate, Name: "spare-", Keep: true, Err: syscall.ENOSPC}, false},
		{vfs.Fault{Op: vfs.OpSync, Name: ".seg", Nth: 20}, true},
	} {
		fsys := vfs.NewFaulty(vfs.OS{})
		l := openLog(t, t.TempDir(), preparedOptions(fsys, storage.Durable))
		fsys.Inject(c.fault)
		value := strings.Repeat("v", 20<<10)
		var err error
		stored := 0
		for ; stored < 95 && err == nil; stored++ { // less than a segment
			err = l.store(&storage.Batch{Data: batch(batchSpec{values: []string{value}})})
		}
		if (err != nil) != c.ends {
			t.Errorf("%s of %s fails: append %d: %v", c.fault.Op, c.fault.Name, stored, err)
		}
		fsys.Heal()
		again := openLog(t, l.crash(), l.opts)
		if _, end := again.Bounds(0); end < int64(stored-1) {
			t.Errorf("%s of %s fails: %d records are left of %d", c.fault.Op, c.fault.Name, end, stored)
		}
	}
}
