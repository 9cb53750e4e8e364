package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

const small = 8 << 10 // segments that roll often

func TestBatchesComeBackVerbatimWithDenseOffsets(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small})
	want := map[uint32][]byte{}
	next := map[uint32]int64{}
	for i := range 200 {
		p := uint32(i % 7)
		n := 1 + i%5
		data := plain(fmt.Sprint(i), n)
		sent := bytes.Clone(data)
		got := l.put(p, data)
		if got[0] != next[p] {
			t.Fatalf("batch %d: got offset %d, want %d", i, got[0], next[p])
		}
		next[p] += int64(n)
		// All but base offset and leader epoch is as it was sent.
		if !bytes.Equal(sent[8:12], data[8:12]) || !bytes.Equal(sent[16:], data[16:]) {
			t.Fatalf("batch %d was changed", i)
		}
		want[p] = append(want[p], data...)
	}
	for range 2 {
		for p, w := range want {
			if got := l.contents(p); !bytes.Equal(got, w) {
				t.Fatalf("partition %d: got %d bytes at offsets %v, want %d", p, len(got), offsets(got), len(w))
			}
			if s, e := l.Bounds(p); s != 0 || e != next[p] {
				t.Errorf("partition %d: bounds %d to %d, want 0 to %d", p, s, e, next[p])
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, l.dir, l.opts)
	}
	if n := len(files(t, l.dir, ".seg")); n < 4 {
		t.Fatalf("got %d segments, the test wants several", n)
	}
}

func TestNothingIsReadableBeforeItIsCommitted(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(1, plain("a", 3))
	if err := l.store(&storage.Batch{Partition: 1, Data: plain("b", 2)}); err != nil {
		t.Fatal(err)
	}
	if _, end := l.Bounds(1); end != 3 {
		t.Errorf("end is %d before the commit, want 3", end)
	}
	c, err := l.Read(1, 3, 1000, -1)
	if err != nil || c.Bytes != 0 {
		t.Errorf("read at the end gave %d bytes, %v; want none", c.Bytes, err)
	}
	var outside *storage.RangeError
	if _, err := l.Read(1, 4, 1000, -1); !errors.As(err, &outside) || outside.End != 3 {
		t.Errorf("read beyond the end: got %v, want a RangeError with end 3", err)
	}
	l.Commit(l.last())
	if _, end := l.Bounds(1); end != 5 {
		t.Errorf("end is %d after the commit, want 5", end)
	}
}

// A tail that is not committed hides nothing that is, even when segments are sealed within it.
func TestAnUncommittedTailHidesNothing(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	l.put(0, plain("a", 3))
	for i := range 60 {
		must(t, l.store(&storage.Batch{Partition: 1, Data: plain(fmt.Sprint("uncommitted", i), 3)}))
		if start, end := l.Bounds(0); start != 0 || end != 3 {
			t.Fatalf("with %d batches behind it the partition is %d to %d, want 0 to 3", i+1, start, end)
		}
	}
	if got := offsets(l.contents(0)); len(got) != 1 {
		t.Errorf("read batches at %v, want one", got)
	}
}

// The batch that contains the offset is returned, also at the last record.
func TestReadInTheMiddleOfABatchReturnsTheWholeBatch(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small})
	for i := range 60 {
		l.put(0, plain(fmt.Sprint("x", i), 10))
	}
	for offset := range int64(600) {
		c, err := l.Read(0, offset, 1, -1)
		if err != nil {
			t.Fatalf("offset %d: %v", offset, err)
		}
		if got, want := offsets(c.Pieces[0]), []int64{offset / 10 * 10}; !cmp.Equal(got, want) {
			t.Fatalf("offset %d: got batches %v, want %v", offset, got, want)
		}
		if c.Next != offset/10*10+10 {
			t.Fatalf("offset %d: next is %d", offset, c.Next)
		}
	}
}

// Raft's own entries take no offsets, wherever they lie and whatever of the tail is cut off again: offsets are dense, a
// log without records ends where it starts, and a new start finds the same.
func TestRaftsOwnEntriesTakeNoOffsets(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: small})
	conf := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "b"}}})
	own := func() {
		for _, e := range []raft.Log{{Type: raft.LogNoop}, {Type: raft.LogBarrier}, {Type: raft.LogConfiguration, Data: conf}} {
			e.Index, e.Term = l.last()+1, l.term
			must(t, l.StoreLog(&e))
		}
	}
	own()
	l.Commit(l.last())
	if start, end := l.Bounds(0); start != 0 || end != 0 || l.LastStable(0) != 0 {
		t.Errorf("without a record the partition is %d to %d, stable to %d; want 0", start, end, l.LastStable(0))
	}
	var next int64
	for round := range 12 {
		l.term++
		own()
		if got := l.put(0, plain(fmt.Sprint("kept", round), 3))[0]; got != next {
			t.Fatalf("round %d: got offset %d, want %d", round, got, next)
		}
		next += 3
		keep := l.last()
		for range 8 { // a leader's tail that was never committed
			own()
			must(t, l.store(&storage.Batch{Data: plain("lost", 5)}, &storage.Batch{Partition: 1, Data: plain("lost", 2)}))
		}
		must(t, l.DeleteRange(keep+1, l.last()))
		if round%4 == 3 {
			l = reopened(t, l)
		}
		if _, end := l.Bounds(0); end != next {
			t.Fatalf("round %d: the partition ends at %d, want %d", round, end, next)
		}
	}
	if start, end := l.Bounds(1); start != 0 || end != 0 {
		t.Errorf("the partition of which all was cut off is %d to %d", start, end)
	}
	for i, got := range offsets(l.contents(0)) {
		if got != int64(3*i) {
			t.Errorf("batch %d is at offset %d", i, got)
		}
	}
	verifyClean(t, l.crash())
}

// reopened is what a start finds after kill -9, in the same term.
func reopened(t *testing.T, l *log) *log {
	t.Helper()
	again := openLog(t, l.crash(), l.opts)
	again.term = l.term
	return again
}

func TestReadHonoursItsLimits(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	size := len(plain("0", 1))
	for range 10 {
		l.put(0, plain("0", 1))
	}
	for _, c := range []struct {
		max   int
		limit int64
		want  []int64
	}{
		{3 * size, -1, []int64{2, 3, 4}},
		{4*size - 1, -1, []int64{2, 3, 4}},
		{1, -1, []int64{2}},
		{1 << 20, 5, []int64{2, 3, 4}},
		{1 << 20, 2, nil},
		{1 << 20, 100, []int64{2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		got, err := l.Read(0, 2, c.max, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, p := range got.Pieces {
			data = append(data, p...)
		}
		if d := cmp.Diff(c.want, offsets(data)); d != "" {
			t.Errorf("max %d, limit %d: %s", c.max, c.limit, d)
		}
	}
}

func TestASecondOpenNamesTheHolder(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	_, err := storage.Open(l.dir, storage.Options{})
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if want := fmt.Sprintf("process %d", pid()); !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("message %q does not name %s", err, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	openLog(t, l.dir, storage.Options{})
}

// What is too large or broken is refused and nothing of it is stored.
func TestBrokenBatchesAreRefused(t *testing.T) {
	t.Parallel()
	good := plain("good", 3)
	edit := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":            {nil, storage.ErrCorruptBatch},
		"cut":              {good[:len(good)-1], storage.ErrCorruptBatch},
		"trailing":         {append(bytes.Clone(good), 0), storage.ErrCorruptBatch},
		"two batches":      {append(bytes.Clone(good), good...), storage.ErrCorruptBatch},
		"bit flip":         {edit(func(b []byte) { b[len(b)-1] ^= 1 }), storage.ErrCorruptBatch},
		"negative length":  {edit(func(b []byte) { b[8] = 0xff }), storage.ErrCorruptBatch},
		"old magic":        {edit(func(b []byte) { b[16] = 1 }), storage.ErrInvalidBatch},
		"base offset":      {edit(func(b []byte) { b[7] = 9 }), storage.ErrInvalidBatch},
		"too large":        {make([]byte, storage.MaxBatchBytes+1), storage.ErrBatchTooLarge},
		"control":          {storage.ControlBatch(1, 0, 0, true, 1), storage.ErrInvalidBatch},
		"count and deltas": {recrc(edit(func(b []byte) { b[60] = 2 })), storage.ErrInvalidBatch},
		"no records":       {recrc(edit(func(b []byte) { b[60], b[26] = 0, 0xff })), storage.ErrInvalidBatch},
		"codec 7":          {recrc(edit(func(b []byte) { b[22] = 7 })), storage.ErrInvalidBatch},
		"txn without id":   {recrc(edit(func(b []byte) { b[22] = 16 })), storage.ErrInvalidBatch},
	} {
		if _, err := storage.CheckBatch(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := storage.CheckBatch(good); err != nil {
		t.Errorf("good batch: %v", err)
	}
}

func TestNotifySignalsOnlyWatchedPartitions(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	ch := make(chan struct{}, 1)
	stop := l.Notify(ch, 3, 4)
	signalled := func() bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	if signalled() {
		t.Error("signal without data")
	}
	l.put(5, plain("x", 1))
	if signalled() {
		t.Error("signal for another partition")
	}
	l.put(4, plain("x", 1))
	if !signalled() {
		t.Error("no signal for new data")
	}
	stop()
	l.put(4, plain("x", 1))
	if signalled() {
		t.Error("signal after stop")
	}
}

// A batch that fills the segment exactly, followed by another in the same StoreLogs, must not write past its end,
// and what is sealed in the middle of a StoreLogs must be whole.
func TestFramesThatEndExactlyAtTheSegmentEnd(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 40; n++ {
		l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
		var want []byte
		for i := range 20 {
			// Values are sized so that many different fillings of a segment come up, the exact one among them.
			data := batch(batchSpec{values: []string{string(bytes.Repeat([]byte{'v'}, 100+n*16+i%3))}})
			again := bytes.Clone(data)
			l.putMany(0, data, again)
			want = append(append(want, data...), again...)
		}
		if got := l.contents(0); !bytes.Equal(got, want) {
			t.Fatalf("n %d: got offsets %v", n, offsets(got))
		}
		dir := l.crash()
		l2 := openLog(t, dir, l.opts)
		if got := l2.contents(0); !bytes.Equal(got, want) {
			t.Fatalf("n %d: after a restart: got offsets %v", n, offsets(got))
		}
		_ = l.Close()
		_ = l2.Close()
		verifyClean(t, dir)
	}
}
