package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

func removeFile(t testing.TB, dir, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(dir, name)))
}

func TestRetentionBySizeRemovesWholeSegmentsFromTheFront(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small, Retention: storage.Retention{Bytes: 3 * small}})
	for i := range 300 {
		l.put(0, plain(fmt.Sprint(i), 2))
	}
	all := l.contents(0)
	n, err := l.Retain()
	must(t, err)
	if n == 0 || l.Size() < 3*small || l.Size() > 4*small {
		t.Fatalf("removed %d segments, %d bytes are left; want between %d and %d", n, l.Size(), 3*small, 4*small)
	}
	start, end := l.Bounds(0)
	if start == 0 || end != 600 {
		t.Fatalf("bounds are %d to %d, want something to 600", start, end)
	}
	for range 2 {
		if got := l.contents(0); !bytes.HasSuffix(all, got) || offsets(got)[0] != start {
			t.Fatalf("what is left is not the end of what was there: %v", offsets(got))
		}
		var outside *storage.RangeError
		if _, err := l.Read(0, start-1, 100, -1); !errors.As(err, &outside) || outside.Start != start {
			t.Errorf("read below the start: got %v, want a RangeError with start %d", err, start)
		}
		l = openLog(t, l.crash(), l.opts)
		if s, e := l.Bounds(0); s != start || e != end {
			t.Fatalf("after a restart the bounds are %d to %d, want %d to %d", s, e, start, end)
		}
	}
	if n := len(files(t, l.dir, ".idx")); n != len(files(t, l.dir, ".seg"))-1 {
		t.Errorf("%d index files are left", n)
	}
}

// Everything expired; the next offset is what it would have been, before and after a restart.
func TestNextOffsetsSurviveWhenEverythingExpired(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := storage.Options{SegmentBytes: small, Now: c.Now, Retention: storage.Retention{Age: time.Hour}}
	l := openLog(t, t.TempDir(), o)
	for i := range 100 {
		l.put(uint32(i%3), plain(fmt.Sprint(i), 2))
	}
	c.now = c.now.Add(59 * time.Minute)
	if n, err := l.Retain(); n != 0 || err != nil {
		t.Fatalf("removed %d segments before their time, %v", n, err)
	}
	c.now = c.now.Add(2 * time.Minute)
	if _, err := l.Retain(); err != nil {
		t.Fatal(err)
	}
	if l.Size() != 0 {
		t.Fatalf("%d bytes are left, want none", l.Size())
	}
	last := l.Front().Index
	for range 2 {
		for p, want := range []int64{68, 66, 66} {
			if s, e := l.Bounds(uint32(p)); s != want || e != want {
				t.Fatalf("partition %d: bounds %d to %d, want %d to %d", p, s, e, want, want)
			}
			if stable := l.LastStable(uint32(p)); stable != want { // an empty log's end is its start, for all who ask
				t.Errorf("partition %d: stable to %d, want %d", p, stable, want)
			}
			if _, ok, err := l.OffsetForTime(uint32(p), 0); ok || err != nil {
				t.Errorf("partition %d: found a time in nothing, %v", p, err)
			}
		}
		l = openLog(t, l.crash(), o)
		if l.Front().Index != last {
			t.Fatalf("raft's entry before the front is %d, want %d", l.Front().Index, last)
		}
	}
	if got := l.put(0, plain("x", 1))[0]; got != 68 {
		t.Errorf("got offset %d, want 68", got)
	}
	l = openLog(t, l.crash(), o)
	if got := offsets(l.contents(0)); len(got) != 1 || got[0] != 68 {
		t.Errorf("after a restart: batches at %v, want 68", got)
	}
	must(t, l.Close())
	verifyClean(t, l.dir)
}

// A record dated in the future keeps nothing, one dated in the past loses nothing.
func TestRetentionGoesByTheTimeOfTheAppend(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small, Now: c.Now, Retention: storage.Retention{Age: time.Hour}})
	future := c.now.Add(100 * 24 * time.Hour).UnixMilli()
	for range 100 {
		l.put(0, batch(batchSpec{times: []int64{future, 1}}))
	}
	if n, err := l.Retain(); n != 0 || err != nil {
		t.Fatalf("removed %d segments of records dated in the past, %v", n, err)
	}
	c.now = c.now.Add(61 * time.Minute)
	if _, err := l.Retain(); err != nil || l.Size() != 0 {
		t.Fatalf("%d bytes are left of records dated in the future, %v", l.Size(), err)
	}
}

// A leader's clock was ahead by a year: its stamps, and all behind them, say nothing of their age for as long.
func TestClockThatWasAheadDoesNotEndRetention(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := storage.Options{SegmentBytes: small, Now: c.Now, Retention: storage.Retention{Age: time.Hour}}
	l := openLog(t, t.TempDir(), o)
	c.now = c.now.Add(365 * 24 * time.Hour)
	l.put(0, plain("ahead", 1))
	c.now = c.now.Add(-365 * 24 * time.Hour)
	for range 100 {
		l.put(0, plain("again right", 1))
	}
	written := l.Size()
	for range 2 { // the files here are of a later time than the clock: the first look counts
		if n, err := l.Retain(); n != 0 || err != nil || l.Size() != written {
			t.Fatalf("removed %d segments before their time, %v", n, err)
		}
		c.now = c.now.Add(59 * time.Minute)
	}
	if _, err := l.Retain(); err != nil || l.Size() != 0 {
		t.Fatalf("%d bytes are left of records two hours old, %v", l.Size(), err)
	}

	for range 100 {
		l.put(0, plain("younger", 1))
	}
	dir := l.crash()
	for _, name := range files(t, dir, ".seg") {
		must(t, os.Chtimes(filepath.Join(dir, name), c.now, c.now))
	}
	l = openLog(t, dir, o)
	c.now = c.now.Add(59 * time.Minute)
	if n, err := l.Retain(); n != 0 || err != nil {
		t.Fatalf("after a restart: removed %d segments before their time, %v", n, err)
	}
	c.now = c.now.Add(2 * time.Minute)
	if n, err := l.Retain(); n == 0 || err != nil || len(files(t, dir, ".seg")) != 1 {
		t.Fatalf("after a restart: removed %d segments whose files are an hour old, %v; want all but the one that is written to", n, err)
	}
}

func TestHoldsWinOverRetention(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small, Retention: storage.Retention{Bytes: 1}})
	for i := range 300 {
		l.put(uint32(i%2), plain(fmt.Sprint(i), 1))
	}
	l.Hold("reader", map[uint32]int64{1: 70})
	_, err := l.Retain()
	must(t, err)
	start, _ := l.Bounds(1)
	if start > 70 || start == 0 {
		t.Errorf("start is %d, want it above 0 and at most 70", start)
	}
	if _, err := l.Read(1, 70, 100, -1); err != nil {
		t.Errorf("the reader's next record is gone: %v", err)
	}
	l.Hold("reader", map[uint32]int64{1: 150})
	if n, err := l.Retain(); n == 0 || err != nil {
		t.Errorf("removed %d segments after the reader moved on, %v", n, err)
	}
	l.Hold("other", map[uint32]int64{0: 149})
	l.Unhold("reader")
	if _, err := l.Retain(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 149, 100, -1); err != nil {
		t.Errorf("the second reader's record is gone: %v", err)
	}
}

// Raft may still want what it has not applied: it panics where that is gone.
func TestRetentionKeepsWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small, Retention: storage.Retention{Bytes: 1}})
	for i := range 300 {
		must(t, l.store(&storage.Batch{Data: plain(fmt.Sprint(i), 1)}))
	}
	l.Commit(50)
	_, err := l.Retain()
	must(t, err)
	if first, _ := l.FirstIndex(); first > 50 {
		t.Errorf("first entry is %d, want at most 50", first)
	}
}

// A reader that has a segment open sees its bytes even when it was removed and its file is used again.
func TestAReaderNeverSeesARecycledSegment(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small, Retention: storage.Retention{Bytes: 1}})
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			start, _ := l.Bounds(0)
			c, err := l.Read(0, start, 64<<10, -1)
			var outside *storage.RangeError
			if errors.As(err, &outside) {
				continue // retention was faster
			}
			if err != nil {
				done <- err
				return
			}
			for _, p := range c.Pieces {
				for _, o := range offsets(p) {
					if o < start {
						done <- fmt.Errorf("read from %d gave offset %d", start, o)
						return
					}
				}
			}
			c.Release()
		}
	}()
	for i := range 1000 {
		l.put(0, plain(fmt.Sprint("record", i), 3))
		if i%20 == 0 {
			_, err := l.Retain()
			must(t, err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := len(files(t, l.dir, "")); n > 20 {
		t.Errorf("%d files are left", n)
	}
}

func TestTrimBeforeMovesTheStartOfOnePartition(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for range 10 {
		l.put(0, plain("x", 2))
		l.put(1, plain("x", 2))
	}
	if got, err := l.TrimBefore(0, 7); got != 7 || err != nil {
		t.Fatalf("got %d, %v", got, err)
	}
	if got, err := l.TrimBefore(0, 3); got != 7 || err != nil {
		t.Errorf("trimming backwards: got %d, %v; want 7", got, err)
	}
	var outside *storage.RangeError
	if _, err := l.TrimBefore(0, 21); !errors.As(err, &outside) {
		t.Errorf("trimming beyond the end: got %v, want a RangeError", err)
	}
	for range 2 {
		if s, e := l.Bounds(0); s != 7 || e != 20 {
			t.Errorf("bounds %d to %d, want 7 to 20", s, e)
		}
		if s, _ := l.Bounds(1); s != 0 {
			t.Errorf("the other partition starts at %d", s)
		}
		if _, err := l.Read(0, 6, 100, -1); !errors.As(err, &outside) {
			t.Errorf("read below the start: got %v", err)
		}
		if c, err := l.Read(0, 7, 1, -1); err != nil || offsets(c.Pieces[0])[0] != 6 {
			t.Errorf("read at the start: %v, want the batch that contains it", err)
		}
		l = openLog(t, l.crash(), l.opts)
	}
}

// A command log's front goes after a snapshot, whole segments at a time, and what raft cut within a segment is hidden.
func TestACommandLogGivesUpItsFront(t *testing.T) {
	t.Parallel()
	l := openCommands(t, 400)
	must(t, l.DeleteRange(1, 250))
	for range 2 {
		first, _ := l.FirstIndex()
		if first != 251 || l.last() != 400 {
			t.Fatalf("entries are %d to %d, want 251 to 400", first, l.last())
		}
		if err := l.command(250); err == nil {
			t.Error("entry 250 is still there")
		}
		must(t, l.command(251))
		l = openLog(t, l.crash(), l.opts)
	}
	must(t, l.DeleteRange(251, 400))
	if first, _ := l.FirstIndex(); first != 0 || l.last() != 0 {
		t.Fatalf("entries are %d to %d, want none", first, l.last())
	}
	for range 2 {
		must(t, l.storeCommand(1000)) // behind a snapshot from elsewhere
		if first, _ := l.FirstIndex(); first != 1000 {
			t.Fatalf("first entry is %d, want 1000", first)
		}
		dir := l.crash()
		must(t, l.DeleteRange(1000, 1000))
		_ = l.Close()
		verifyClean(t, dir)
		again := openLog(t, dir, l.opts)
		must(t, again.command(1000))
		must(t, again.DeleteRange(1000, 1000))
		l = again
	}
}

// What holds data is never deleted because raft asks for it.
func TestAJournalRefusesToLoseItsFront(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for range 10 {
		l.put(0, plain("x", 1))
	}
	if err := l.DeleteRange(1, 5); err == nil {
		t.Error("the front was deleted")
	}
	if _, end := l.Bounds(0); end != 10 {
		t.Errorf("end is %d, want 10", end)
	}
	l = openLog(t, l.crash(), l.opts)
	if err := l.DeleteRange(5, 10); err == nil {
		t.Error("committed entries were deleted")
	}
	l = openLog(t, l.crash(), l.opts)
	if got := len(offsets(l.contents(0))); got != 10 {
		t.Errorf("%d batches are left, want 10", got)
	}
}

// On a full disk retention still frees space, even if the state at the front has outgrown the start file.
func TestRetentionWorksOnAFullDisk(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	o := storage.Options{FS: fsys, Mode: storage.Replicated, SegmentBytes: 64 << 10, Retention: storage.Retention{Bytes: 128 << 10}}
	l := openLog(t, t.TempDir(), o)
	for i := range 3000 {
		l.put(uint32(i), plain("x", 1))
	}
	n, err := l.Retain()
	must(t, err) // leaves spares
	if n == 0 {
		t.Fatal("nothing was removed; the test wants spares")
	}
	for i := range 9000 {
		l.put(uint32(3000+i), plain("x", 1))
	}
	fsys.Limit(0)
	size := l.Size()
	if n, err := l.Retain(); n == 0 || err != nil || l.Size() >= size {
		t.Fatalf("removed %d segments on the full disk, %v", n, err)
	}
	must(t, l.Err())
	for p := range uint32(12000) {
		if _, end := l.Bounds(p); end != 1 {
			t.Fatalf("partition %d ends at %d, want 1", p, end)
		}
	}
	l = openLog(t, l.crash(), storage.Options{})
	if _, end := l.Bounds(0); end != 1 {
		t.Errorf("after a restart the first partition ends at %d, want 1", end)
	}
}

// Raft must never be able to send the entry before the front, of which only index and term are left: it could if that
// were the very first entry, or the one behind the front it started from.
func TestTheEntryBeforeTheFrontIsNeverOneThatRaftSends(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 1}}
	l := openLog(t, t.TempDir(), o)
	large := func() []byte { return batch(batchSpec{values: []string{string(bytes.Repeat([]byte("x"), 4<<10))}}) }
	for start := range 3 { // each batch fills a segment
		from := l.Front().Index
		l.put(0, large())
		l.put(0, large())
		if _, err := l.Retain(); err != nil {
			t.Fatal(err)
		}
		if got := l.Front().Index; got == from+1 {
			t.Fatalf("start %d: the front moved by one entry, to %d", start, got)
		}
		l.put(0, large())
		l.put(0, large())
		if _, err := l.Retain(); err != nil {
			t.Fatal(err)
		}
		if got := l.Front().Index; got <= from+1 {
			t.Fatalf("start %d: the front is still at %d", start, got)
		}
		var phantom raft.Log
		if err := l.GetLog(l.Front().Index, &phantom); err != nil || phantom.Term != 1 {
			t.Errorf("start %d: the entry before the front: %+v, %v", start, phantom, err)
		}
		if _, err := l.Frame(l.Front().Index); err != raft.ErrLogNotFound {
			t.Errorf("start %d: its frame: got %v, want ErrLogNotFound", start, err)
		}
		l = openLog(t, l.crash(), o)
	}
}
