package storage_test

import (
	"bytes"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// trim stores a trim as an entry without committing it.
func (l *log) trim(partition uint32, offset int64) {
	l.t.Helper()
	must(l.t, l.StoreLog(&raft.Log{Index: l.last() + 1, Term: l.term, Type: raft.LogCommand, Data: storage.TrimCommand(partition, offset)}))
}

func (l *log) wantStart(partition uint32, want int64) {
	l.t.Helper()
	if got, _ := l.Bounds(partition); got != want {
		l.t.Errorf("partition %d starts at %d, want %d", partition, got, want)
	}
}

func TestATrimTakesEffectWhereItIsCommitted(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for range 10 {
		l.put(0, plain("x", 2))
		l.put(1, plain("x", 2))
	}
	l.trim(0, 7)
	l.wantStart(0, 0)
	l.Commit(l.last() - 1)
	l.wantStart(0, 0)
	l.Commit(l.last())
	l.wantStart(0, 7)
	l.trim(0, 3) // never back
	l.Commit(l.last())
	for range 2 {
		l.wantStart(0, 7)
		l.wantStart(1, 0)
		for range 100 { // the trim gets into a sealed segment
			l.put(1, plain("y", 2))
		}
		l = openLog(t, l.crash(), l.opts)
	}
}

// A crash between the commit and the start file's write is made good by the log.
func TestATrimIsKnownFromTheLogAlone(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for range 10 {
		l.put(0, plain("x", 2))
	}
	l.trim(0, 7)
	for range 100 { // nothing of it is committed
		must(t, l.store(&storage.Batch{Partition: 1, Data: plain("y", 2)}))
	}
	l.wantStart(0, 0)
	l = openLog(t, l.crash(), l.opts)
	l.Commit(l.last())
	l.wantStart(0, 7)
}

func TestATrimThatIsCutAwayDeletesNothing(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for range 10 {
		l.put(0, plain("x", 2))
	}
	l.trim(0, 7)
	must(t, l.DeleteRange(l.last(), l.last()))
	l.put(0, plain("x", 2))
	l.wantStart(0, 0)
	l = openLog(t, l.crash(), l.opts)
	l.Commit(l.last())
	l.wantStart(0, 0)
}

// A copy that gets the frames deletes the same, whichever of its rules for what may be shown holds.
func TestACopyOfTheLogIsTrimmedAlike(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for range 10 {
		l.put(0, plain("x", 2))
	}
	l.trim(0, 7)
	l.Commit(l.last())
	c := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, ReadDurable: true})
	for {
		f, err := l.FramesAfter(c.End().Index, 100)
		must(t, err)
		if f == nil {
			break
		}
		must(t, c.StoreReceived(bytes.Clone(bytes.Join(f.Pieces, nil))))
		f.Release()
		c.Commit(c.End().Index)
		if start, end := c.Bounds(0); start > end {
			t.Fatalf("the copy starts at %d and ends at %d", start, end)
		}
	}
	must(t, c.Flush())
	c.wantStart(0, 7)
	if !bytes.Equal(c.contents(0), l.contents(0)) {
		t.Error("the copy has something else")
	}
}

// Other commands have no place in a journal of batches.
func TestAJournalOfBatchesTakesNoOtherCommands(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(0, plain("x", 2))
	if err := l.StoreLog(&raft.Log{Index: l.last() + 1, Term: l.term, Type: raft.LogCommand, Data: []byte("anything of 16 b")}); err == nil {
		t.Error("a command that is no trim was stored")
	}
}
