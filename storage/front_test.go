package storage_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// trimmed is a log without its front, and the same log before that was removed and before some of its end came.
func trimmed(t *testing.T) (leader, member *log) {
	o := storage.Options{SegmentBytes: 8 << 10, FS: vfs.NewMem()}
	leader = openLog(t, "leader", o)
	for i := range 60 {
		leader.put(uint32(i%2), plain("some value that takes room", 4))
	}
	member = openLog(t, "member", storage.Options{SegmentBytes: 8 << 10, FS: vfs.NewMem()})
	copyInto(t, member.Journal, leader, 4000)
	leader.SetRetention(storage.Retention{Bytes: 10 << 10})
	if n, err := leader.Retain(); err != nil || n == 0 {
		t.Fatalf("%d segments were removed: %v", n, err)
	}
	return leader, member
}

// A log keeps what lies behind a front that it has, or is past: it may have been acknowledged.
func TestALogThatGoesOnBehindAFrontDoesNotBeginAnewThere(t *testing.T) {
	t.Parallel()
	leader, member := trimmed(t)
	front, last := leader.Front(), member.last()
	if front.Index >= last {
		t.Fatalf("the front is behind entry %d, the log ends with %d; the test wants it longer", front.Index, last)
	}
	contents := [2][]byte{member.contents(0), member.contents(1)}
	refused := func(state []byte) {
		t.Helper()
		if err := member.Reset(state); !errors.Is(err, storage.ErrHasMore) {
			t.Fatalf("got %v, want ErrHasMore", err)
		}
		if got := member.last(); got != last {
			t.Errorf("the log ends with entry %d, want %d as before", got, last)
		}
	}
	refused(front.State)
	if got := [2][]byte{member.contents(0), member.contents(1)}; !bytes.Equal(got[0], contents[0]) || !bytes.Equal(got[1], contents[1]) {
		t.Error("the log has not what it had")
	}
	if at, of, ok := member.Anchor(front.Index, front.Term); !ok || at != front.Index || of != front.Term {
		t.Errorf("the anchor is entry %d of term %d, %v; want %d of %d", at, of, ok, front.Index, front.Term)
	}
	if _, _, ok := member.Anchor(front.Index, front.Term+1); ok {
		t.Error("an entry of another term is taken for the leader's")
	}
	if _, _, ok := member.Anchor(last+1, 1); ok {
		t.Error("an entry that is not there is taken for the leader's")
	}

	member.SetRetention(storage.Retention{Bytes: 1})
	if n, err := member.Retain(); err != nil || n == 0 {
		t.Fatalf("%d segments were removed: %v", n, err)
	}
	if own := member.Front(); own.Index <= front.Index {
		t.Fatalf("the own front is behind entry %d, the leader's behind %d; the test wants it later", own.Index, front.Index)
	} else if at, of, ok := member.Anchor(front.Index, front.Term); !ok || at != own.Index || of != own.Term {
		t.Errorf("the anchor is entry %d of term %d, %v; want the own front %d of %d", at, of, ok, own.Index, own.Term)
	}
	refused(front.State)
}

// Of another history nothing counts: the log begins anew. So it does behind entries that it does not have, and again
// after an interruption.
func TestALogThatLacksAFrontBeginsAnewThere(t *testing.T) {
	t.Parallel()
	leader, _ := trimmed(t)
	other := openLog(t, "other", storage.Options{SegmentBytes: 8 << 10, FS: vfs.NewMem()})
	other.term = 7
	for range 100 {
		other.put(0, plain("else", 1))
	}
	short := openLog(t, "short", storage.Options{FS: vfs.NewMem()})
	short.put(0, plain("some value that takes room", 4))
	front := leader.Front()
	for _, l := range []*log{other, short} {
		for range 2 {
			must(t, l.Reset(front.State))
			if got, want := l.End(), (storage.End{Index: front.Index, Position: front.Position}); got != want {
				t.Errorf("the log begins at %+v, want %+v", got, want)
			}
		}
		copyInto(t, l.Journal, leader, 4000)
		if diff := cmp.Diff(leader.contents(1), l.contents(1)); diff != "" {
			t.Error(diff)
		}
	}
}

// looking has somebody look before each thing that is done to the names on a disk.
type looking struct {
	vfs.FS
	look func()
}

func (f *looking) Remove(name string) error {
	f.look()
	return f.FS.Remove(name)
}

func (f *looking) SyncDir(name string) error {
	f.look()
	return f.FS.SyncDir(name)
}

func (f *looking) Rename(from, to string) error {
	f.look()
	return f.FS.Rename(from, to)
}

// Whoever reads while a log begins anew never sees an end go back.
func TestNoEndGoesBackWhileALogBeginsAnew(t *testing.T) {
	t.Parallel()
	leader, _ := trimmed(t)
	for _, mode := range []storage.Mode{storage.Durable, storage.Replicated} {
		for _, durable := range []bool{false, true} {
			disk := &looking{FS: vfs.NewMem(), look: func() {}}
			l := openLog(t, "short", storage.Options{SegmentBytes: 8 << 10, FS: disk, Mode: mode, ReadDurable: durable})
			l.put(0, plain("some value that takes room", 4))
			l.put(1, plain("some value that takes room", 4))
			must(t, l.Flush())
			looks, shown := 0, [2]int64{}
			disk.look = func() {
				looks++
				for p := range uint32(2) {
					_, end := l.Bounds(p)
					if end < shown[p] {
						t.Errorf("mode %v, read when durable %v: the end of partition %d goes back from %d to %d", mode, durable, p, shown[p], end)
					}
					shown[p] = end
				}
			}
			disk.look()
			if shown[0] == 0 {
				t.Fatal("nothing is shown; the test wants something")
			}
			must(t, l.Reset(leader.Front().State))
			disk.look()
			if looks < 4 {
				t.Errorf("somebody looked %d times; the test wants that in between", looks)
			}
		}
	}
}
