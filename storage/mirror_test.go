package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// copyInto moves all that is visible in one journal behind the end of another.
func copyInto(t *testing.T, to *storage.Journal, from *log, most int) {
	t.Helper()
	for {
		f, err := from.FramesAfter(to.End().Index, most)
		must(t, err)
		if f == nil {
			return
		}
		if f.Count > 1 && f.Bytes > most {
			t.Fatalf("%d frames of %d bytes, at most %d were asked for", f.Count, f.Bytes, most)
		}
		buf := bytes.Join(f.Pieces, nil)
		last := to.End().Index + uint64(f.Count)
		f.Release()
		if got := storage.LastOf(buf); got != last {
			t.Fatalf("the last entry is %d, want %d", got, last)
		}
		must(t, to.StoreReceived(buf))
		to.Commit(last)
	}
}

// A copy has the same bytes at the same places, over the ends of segments and a restart, and shows the same.
func TestACopyIsTheSameLog(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 8 << 10})
	dir := t.TempDir()
	o := storage.Options{SegmentBytes: 16 << 10, Mode: storage.Replicated, ReadDurable: true, FlushEvery: time.Millisecond}
	other, err := storage.Open(dir, o)
	must(t, err)
	for round := range 4 {
		for i := range 20 {
			l.put(uint32(i%3), plain(fmt.Sprintf("round %d, some value that takes room", round), 1+i%5))
		}
		l.noop()
		l.term++
		copyInto(t, other, l, 1+3000*round)
		must(t, other.Flush())
		if got, want := other.Visible(), l.Visible(); got != want || other.LastTerm() != l.term-1 || other.Records() != l.Records() {
			t.Fatalf("the copy goes to %+v in term %d with %d records, want %+v, %d and %d", got, other.LastTerm(), other.Records(), want, l.term-1, l.Records())
		}
		must(t, other.Close())
		other, err = storage.Open(dir, o)
		must(t, err)
		other.Commit(other.End().Index)
	}
	defer other.Close()
	for i := uint64(1); i <= l.last(); i++ {
		want, err := l.Frame(i)
		must(t, err)
		got, err := other.Frame(i)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("entry %d differs", i)
		}
	}
	for p := range uint32(3) {
		if got, want := (&log{t: t, Journal: other}).contents(p), l.contents(p); !bytes.Equal(got, want) {
			t.Errorf("partition %d differs", p)
		}
	}
}

func TestOnlyWhatIsCommittedIsCopied(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(0, plain("committed", 1))
	end := l.Visible()
	must(t, l.store(&storage.Batch{Data: plain("not yet", 1)}))
	for after := range end.Index + 3 {
		f, err := l.FramesAfter(after, 1<<20)
		must(t, err)
		if want := int(max(end.Index, after) - after); (f == nil) != (want == 0) || f != nil && f.Count != want {
			t.Errorf("after entry %d there are %+v, want %d frames", after, f, want)
		}
		if f != nil {
			f.Release()
		}
	}
	if got := l.End(); got.Index != end.Index+1 || l.Visible() != end {
		t.Errorf("the log ends at %+v and shows %+v, want %+v to be shown", got, l.Visible(), end)
	}
}

// Where the front is gone it is said so, and the state there lets a copy begin behind it.
func TestACopyBeginsBehindATrimmedFront(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 8 << 10})
	for i := range 60 {
		l.put(uint32(i%2), plain("some value that takes room", 4))
	}
	l.SetRetention(storage.Retention{Bytes: 10 << 10})
	if n, err := l.Retain(); err != nil || n == 0 {
		t.Fatalf("%d segments were removed: %v", n, err)
	}
	other, err := storage.Open(t.TempDir(), storage.Options{SegmentBytes: 8 << 10})
	must(t, err)
	defer other.Close()
	if _, err := l.FramesAfter(0, 1<<20); !errors.Is(err, raft.ErrLogNotFound) {
		t.Fatalf("frames of the front that is gone: %v", err)
	}
	front := l.Front()
	must(t, other.Reset(front.State))
	if got, want := other.End(), (storage.End{Index: front.Index, Position: front.Position}); got != want || other.Visible() != want {
		t.Fatalf("the copy begins at %+v, want %+v", got, want)
	}
	copyInto(t, other, l, 4000)
	for p := range uint32(2) {
		wantStart, wantEnd := l.Bounds(p)
		if start, end := other.Bounds(p); start != wantStart || end != wantEnd {
			t.Errorf("partition %d is %d to %d, want %d to %d", p, start, end, wantStart, wantEnd)
		}
		if got, want := (&log{t: t, Journal: other}).contents(p), l.contents(p); !bytes.Equal(got, want) {
			t.Errorf("partition %d differs", p)
		}
	}
}

// Frames of another history change nothing, and the copy can be read and go on from where it belongs; damaged ones
// neither.
func TestACopyTakesNoOtherHistory(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	stranger := openLog(t, t.TempDir(), storage.Options{})
	for i := range 5 {
		l.put(0, plain(fmt.Sprint("ours ", i), 1))
		stranger.put(0, plain(fmt.Sprint("else ", i), 1)) // of the same length
	}
	other, err := storage.Open(t.TempDir(), storage.Options{})
	must(t, err)
	defer other.Close()
	f, err := l.FramesAfter(0, 1)
	must(t, err)
	must(t, other.StoreReceived(bytes.Join(f.Pieces, nil)))
	f.Release()
	f, err = stranger.FramesAfter(1, 1<<20)
	must(t, err)
	var diverged *storage.DivergedError
	if err := other.StoreReceived(bytes.Join(f.Pieces, nil)); !errors.As(err, &diverged) || other.End().Index != 1 || other.Err() != nil {
		t.Fatalf("frames of another log: %v; the copy ends at %+v, %v", err, other.End(), other.Err())
	}
	f.Release()
	copyInto(t, other, l, 1)
	l.put(0, plain("the next", 1))
	f, err = l.FramesAfter(other.End().Index, 1)
	must(t, err)
	frames := bytes.Join(f.Pieces, nil)
	f.Release()
	for _, at := range []int{70, len(frames) - 20} {
		damaged := bytes.Clone(frames)
		damaged[at] ^= 1
		if err := other.StoreReceived(damaged); !errors.Is(err, storage.ErrDamagedFrame) || other.Err() != nil {
			t.Errorf("a frame with a flipped bit at %d: %v, %v", at, err, other.Err())
		}
	}
	must(t, other.StoreReceived(frames))
	if got := other.End(); got != l.End() {
		t.Errorf("the copy ends at %+v, want %+v", got, l.End())
	}
}

// Who waits for the end hears of every kind of entry, and of none that is not committed.
func TestTheEndIsTold(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	changed := make(chan struct{}, 1)
	stop := l.NotifyEnd(changed)
	heard := func(want bool) {
		t.Helper()
		select {
		case <-changed:
			if !want {
				t.Error("a change was told that is none")
			}
		default:
			if want {
				t.Error("a change was not told")
			}
		}
	}
	heard(false)
	l.noop()
	heard(true)
	l.put(3, plain("a", 1))
	heard(true)
	must(t, l.store(&storage.Batch{Data: plain("b", 1)}))
	heard(false)
	l.Commit(l.last())
	heard(true)
	stop()
	l.noop()
	heard(false)
}
