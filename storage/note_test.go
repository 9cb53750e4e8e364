package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// frameEnds are the file offsets at which the frames of a segment end.
func frameEnds(t testing.TB, path string) (ends []int) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	for at := 0; at+64 <= len(b) && binary.LittleEndian.Uint32(b[at:]) == 0x314a4244; {
		at += int(binary.LittleEndian.Uint32(b[at+4:]))
		ends = append(ends, at)
	}
	return ends
}

// spoiled is a copy of a crashed journal, without its mark, of which some bytes of the last segment were changed.
func spoiled(t testing.TB, dir string, change func(segment []byte)) string {
	t.Helper()
	to := t.TempDir()
	copyDir(t, dir, to)
	forgetDurable(t, to)
	path := lastSegment(t, to)
	b, err := os.ReadFile(path)
	must(t, err)
	change(b)
	must(t, os.WriteFile(path, b, 0o644))
	return to
}

// After a power cut the mark may be as old as can be. In a durable journal each frame but those of the last write is
// followed by one that was written after a sync of it, so whatever happened to it is damage: it is told with its range, by
// the start and by Verify, nothing is cut, and a repair gets the journal going again. Of the last write nobody can tell.
func TestDamageAboveAStaleMarkIsNoTornTail(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for i := range 5 {
		l.put(0, plain(fmt.Sprint("x", i), 3))
	}
	l.putMany(0, plain("last", 1), plain("write", 1))
	dir := l.crash()
	ends := append([]int{0}, frameEnds(t, lastSegment(t, dir))...)
	for i, from := range ends[:len(ends)-1] {
		to := ends[i+1]
		for name, change := range map[string]func(b []byte){
			"magic":           func(b []byte) { b[from] ^= 1 },
			"length":          func(b []byte) { b[from+6] ^= 4 },
			"header":          func(b []byte) { b[from+20] ^= 1 },
			"note":            func(b []byte) { b[from+53] ^= 1 },
			"batch":           func(b []byte) { b[to-20] ^= 0x80 },
			"a sector":        func(b []byte) { clear(b[from : from+64]) },
			"all of it":       func(b []byte) { clear(b[from:to]) },
			"what was before": func(b []byte) { copy(b[from:to], bytes.Repeat([]byte("garbage!"), 100)) },
		} {
			at := spoiled(t, dir, change)
			_, err := tryOpen(t, at, l.opts)
			if i >= 5 { // the last write
				if err != nil {
					t.Errorf("frame %d, %s: what may be a torn tail stops the start: %v", i, name, err)
				}
				continue
			}
			want := &storage.DamageError{Position: uint64(from), End: uint64(to), Offset: int64(from)}
			sameDamage(t, fmt.Sprintf("frame %d, %s: the start", i, name), err, want)
			r, err := storage.Verify(at)
			must(t, err)
			sameDamage(t, fmt.Sprintf("frame %d, %s: Verify", i, name), errors.Join(r.Problems...), want)
			repair(t, at, "")
			again := openLog(t, at, l.opts)
			if got := len(offsets(again.contents(0))); got != i {
				t.Errorf("frame %d, %s: the repaired journal has %d batches", i, name, got)
			}
		}
	}
}

// sameDamage checks that an error is the damage of a range, and nothing else.
func sameDamage(t *testing.T, what string, err error, want *storage.DamageError) {
	t.Helper()
	var got *storage.DamageError
	if !errors.As(err, &got) {
		t.Errorf("%s: got %v, want a DamageError", what, err)
		return
	}
	if diff := cmp.Diff([]uint64{want.Position, want.End, uint64(want.Offset)}, []uint64{got.Position, got.End, uint64(got.Offset)}); diff != "" {
		t.Errorf("%s: range -want +got:\n%s", what, diff)
	}
}

// Frames without notes, as they were written before there were any, prove nothing: the journal is cut as it was.
func TestFramesWithoutNotesProveNothing(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for i := range 5 {
		l.put(0, plain(fmt.Sprint("x", i), 3))
	}
	dir := l.crash()
	ends := append([]int{0}, frameEnds(t, lastSegment(t, dir))...)
	at := spoiled(t, dir, func(b []byte) {
		for _, from := range ends[:5] {
			clear(b[from+52 : from+56])
		}
		b[ends[2]+20] ^= 1
	})
	again := openLog(t, at, l.opts)
	if got := len(offsets(again.contents(0))); got != 2 {
		t.Errorf("%d batches are left, want 2", got)
	}
}

// In the mode replicated a frame vouches for what was flushed when it was written. What was not may be lost in any order,
// so a whole frame behind a hole proves nothing of it.
func TestReplicatedFramesVouchForWhatWasFlushed(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, FlushEvery: 1 << 62})
	for i := range 6 {
		if i == 3 {
			must(t, l.Flush())
		}
		l.put(0, plain(fmt.Sprint("x", i), 3))
	}
	dir := l.crash()
	ends := append([]int{0}, frameEnds(t, lastSegment(t, dir))...)
	for i, from := range ends[:6] {
		_, err := tryOpen(t, spoiled(t, dir, func(b []byte) { b[from+20] ^= 1 }), l.opts)
		if i < 3 {
			sameDamage(t, fmt.Sprintf("frame %d", i), err, &storage.DamageError{Position: uint64(from), End: uint64(ends[i+1]), Offset: int64(from)})
		} else if err != nil {
			t.Errorf("frame %d was never synced, and its loss stops the start: %v", i, err)
		}
	}
}

// What the leader had on stable storage when it wrote a frame says nothing of a follower, which gets many frames at once:
// a torn write of them is a torn tail.
func TestANoteIsOfItsOwnReplica(t *testing.T) {
	t.Parallel()
	leader := openLog(t, t.TempDir(), storage.Options{})
	for i := range 4 {
		leader.put(0, plain(fmt.Sprint("x", i), 3))
	}
	l := openLog(t, t.TempDir(), storage.Options{})
	f, err := leader.Frames(sentLogs(t, leader.Journal, 1, 4), math.MaxInt)
	must(t, err)
	buf := bytes.Join(f.Pieces, nil)
	f.Release()
	logs, err := l.Received(buf, 1)
	must(t, err)
	must(t, l.StoreLogs(logs))
	dir := l.crash()
	ends := frameEnds(t, lastSegment(t, dir))
	again := openLog(t, spoiled(t, dir, func(b []byte) { clear(b[ends[0]:ends[1]]) }), l.opts)
	if got := again.last(); got != 1 {
		t.Errorf("the follower's log ends at entry %d, want 1", got)
	}
	leader.put(0, plain("y", 1))
	frame, err := leader.Frame(5)
	must(t, err)
	must(t, l.StoreLog(&raft.Log{Index: 5, Term: 1, Type: raft.LogCommand, Extensions: frame})) // it vouches for the others
	at := spoiled(t, l.crash(), func(b []byte) { clear(b[ends[0]:ends[1]]) })
	_, err = tryOpen(t, at, l.opts)
	sameDamage(t, "with another write behind", err, &storage.DamageError{Position: uint64(ends[0]), End: uint64(ends[1]), Offset: int64(ends[0])})
}

// A cut of the end waits for a flush that is under way, which would else take the mark back up to what is being cut off.
func TestACutAndAFlushDoNotMix(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	disk := vfs.NewFaulty(mem)
	l := openLog(t, "j", storage.Options{FS: disk, Mode: storage.Replicated, FlushEvery: 1 << 62})
	l.put(0, plain("kept", 1))
	must(t, l.Flush())
	keep := l.last()
	for range 3 {
		must(t, l.store(&storage.Batch{Data: plain("uncommitted", 1)}))
	}
	release, flushing, cutting := make(chan struct{}), make(chan struct{}), make(chan struct{})
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Name: ".seg", Stall: release, Stalled: flushing})
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Name: "mark", Stall: release, Stalled: cutting})
	flushed, cut := make(chan error, 1), make(chan error, 1)
	go func() { flushed <- l.Flush() }()
	<-flushing
	go func() { cut <- l.DeleteRange(keep+1, keep+3) }()
	select {
	case <-cutting:
		t.Error("the end is being cut while it is flushed")
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	must(t, <-flushed)
	must(t, <-cut)
	l.put(0, plain("next", 1))
	again := openLog(t, "j", storage.Options{FS: mem.Crash(mem.Doubts())})
	if got := offsets(again.contents(0)); len(got) != 2 {
		t.Errorf("got batches at %v, want two", got)
	}
}
