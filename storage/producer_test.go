package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/storage"
)

// sent is a batch of n records of an idempotent producer.
func sent(producer int64, epoch int16, sequence int32, n int) *storage.Batch {
	return &storage.Batch{Partition: 1, Data: batch(batchSpec{values: make([]string, n), producer: producer, epoch: epoch, sequence: sequence})}
}

func (l *log) send(b *storage.Batch) *storage.Batch {
	l.t.Helper()
	if err := l.store(b); err != nil {
		l.t.Fatalf("storing: %v", err)
	}
	l.Commit(l.last())
	return b
}

func wantStored(t *testing.T, b *storage.Batch, offset int64, dup bool) {
	t.Helper()
	if b.Err != nil || b.Offset != offset || b.Duplicate != dup {
		t.Errorf("got offset %d, duplicate %v, error %v; want offset %d, duplicate %v", b.Offset, b.Duplicate, b.Err, offset, dup)
	}
}

// A repeated batch is answered with the offset of the original and not stored again, also by a journal that was
// opened anew, and also if both come in one proposal.
func TestRepeatedBatchesGetTheirOriginalOffset(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for i := range int32(40) {
		wantStored(t, l.send(sent(7, 0, i*2, 2)), int64(i*2), false)
	}
	for range 2 {
		for i := int32(35); i < 40; i++ {
			wantStored(t, l.send(sent(7, 0, i*2, 2)), int64(i*2), true)
		}
		if _, end := l.Bounds(1); end != 80 {
			t.Fatalf("end is %d, want 80", end)
		}
		l = openLog(t, l.crash(), l.opts)
	}
	first, again := sent(7, 0, 80, 3), sent(7, 0, 80, 3)
	must(t, l.store(first, again))
	wantStored(t, first, 80, false)
	wantStored(t, again, 80, true)
}

func TestBatchesOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for i := range int32(8) {
		l.send(sent(7, 3, i, 1))
	}
	for name, c := range map[string]*storage.Batch{
		"gap":                      sent(7, 3, 9, 1),
		"older than the last five": sent(7, 3, 2, 1),
		"other length":             sent(7, 3, 7, 2),
		"new epoch not at 0":       sent(7, 4, 8, 1),
	} {
		var e *storage.SequenceError
		if l.send(c); !errors.As(c.Err, &e) {
			t.Errorf("%s: got offset %d, error %v; want a SequenceError", name, c.Offset, c.Err)
		}
	}
	var old *storage.EpochError
	if b := l.send(sent(7, 2, 8, 1)); !errors.As(b.Err, &old) || old.Current != 3 {
		t.Errorf("old epoch: got %v, want an EpochError", b.Err)
	}
	wantStored(t, l.send(sent(7, 3, 8, 1)), 8, false) // what was refused left no trace
	wantStored(t, l.send(sent(7, 4, 0, 1)), 9, false)
	if b := l.send(sent(7, 3, 9, 1)); !errors.As(b.Err, &old) {
		t.Errorf("fenced epoch: got %v, want an EpochError", b.Err)
	}
	// An unknown producer may start anywhere: what it did before may be gone with retention.
	wantStored(t, l.send(sent(8, 0, 1234, 1)), 10, false)
	// Unless it numbers each transaction from 0: then the first batch is still to come.
	late := sent(9, 0, 1, 1)
	late.FromZero = true
	var e *storage.SequenceError
	if l.send(late); !errors.As(late.Err, &e) || e.Want != 0 {
		t.Errorf("a second batch before the first: got %v, want a SequenceError", late.Err)
	}
	// Refused batches leave their neighbours in the proposal alone.
	bad, good := sent(7, 4, 7, 1), sent(7, 4, 1, 1)
	must(t, l.store(bad, good))
	wantStored(t, good, 11, false)
	if bad.Err == nil {
		t.Error("batch with a gap was stored")
	}
}

// Sequence numbers go on at 0 behind 2^31-1.
func TestSequencesWrap(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	wantStored(t, l.send(sent(7, 0, math.MaxInt32-2, 2)), 0, false) // ...45, ...46
	wantStored(t, l.send(sent(7, 0, math.MaxInt32, 3)), 2, false)   // ...47, 0, 1
	wantStored(t, l.send(sent(7, 0, math.MaxInt32, 3)), 2, true)
	wantStored(t, l.send(sent(7, 0, 2, 1)), 5, false)
}

// The state of producers is exactly what the stored batches say, after a cut of the end too.
func TestProducersAreRolledBackWithTheLog(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{4 << 10, 1 << 20} {
		l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: size})
		for i := range int32(30) {
			l.send(sent(7, 0, i, 1))
		}
		keep := l.last()
		for i := int32(30); i < 60; i++ {
			must(t, l.store(sent(7, 0, i, 1)))
		}
		must(t, l.store(sent(9, 5, 100, 4)))
		must(t, l.DeleteRange(keep+1, l.last()))
		for range 2 {
			wantStored(t, l.send(sent(7, 0, 29, 1)), 29, true)
			var e *storage.SequenceError
			if b := l.send(sent(7, 0, 31, 1)); !errors.As(b.Err, &e) || e.Want != 30 {
				t.Errorf("got %v, want a SequenceError that wants 30", b.Err)
			}
			l = openLog(t, l.crash(), l.opts)
		}
		wantStored(t, l.send(sent(7, 0, 30, 1)), 30, false)
		wantStored(t, l.send(sent(9, 0, 3, 1)), 31, false) // all of producer 9 was cut off
	}
}

func TestProducersSurviveTheRetentionOfTheirBatches(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10, Now: c.Now, Retention: storage.Retention{Bytes: 1}})
	for i := range int32(100) {
		l.send(sent(7, 0, i, 1))
		l.send(&storage.Batch{Partition: 2, Data: plain("x", 3)})
	}
	for range 40 {
		l.send(&storage.Batch{Partition: 2, Data: plain("x", 3)})
	}
	if n, err := l.Retain(); n < 2 || err != nil {
		t.Fatalf("removed %d segments, %v; the test wants several", n, err)
	}
	if s, e := l.Bounds(1); s != 100 || e != 100 {
		t.Fatalf("bounds are %d to %d, the test wants all batches gone", s, e)
	}
	for range 2 {
		wantStored(t, l.send(sent(7, 0, 99, 1)), 99, true)
		l = openLog(t, l.crash(), l.opts)
	}
	wantStored(t, l.send(sent(7, 0, 100, 1)), 100, false)
}

func txn(producer int64, sequence int32, n int) *storage.Batch {
	return &storage.Batch{Partition: 1, Data: batch(batchSpec{values: make([]string, n), producer: producer, sequence: sequence, txn: true})}
}

func marker(producer int64, epoch int16, commit bool) *storage.Batch {
	return &storage.Batch{Partition: 1, Data: storage.ControlBatch(producer, epoch, 0, commit, 1), Marker: true}
}

func TestOpenTransactionsBoundWhatIsStable(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	check := func(stable int64, aborted ...storage.Aborted) {
		t.Helper()
		for range 2 {
			if got := l.LastStable(1); got != stable {
				t.Errorf("last stable offset is %d, want %d", got, stable)
			}
			if d := cmp.Diff(aborted, l.Aborted(1, 0, 1000)); d != "" {
				t.Errorf("aborted: %s", d)
			}
			l = openLog(t, l.crash(), l.opts)
		}
	}
	l.put(1, plain("x", 2)) // 0, 1
	check(2)
	l.send(txn(7, 0, 3)) // 2-4
	check(2)
	l.put(1, plain("x", 2)) // 5, 6
	l.send(txn(8, 0, 1))    // 7
	check(2)
	l.send(marker(7, 0, false)) // 8
	check(7, storage.Aborted{Producer: 7, First: 2, Last: 8})
	for range 60 { // into another segment
		l.put(1, plain("x", 1)) // 9-68
	}
	check(7, storage.Aborted{Producer: 7, First: 2, Last: 8})
	l.send(marker(8, 0, true)) // 69
	check(70, storage.Aborted{Producer: 7, First: 2, Last: 8})
	l.send(txn(7, 3, 1))        // 70
	l.send(marker(7, 1, false)) // 71, with the epoch that fences
	check(72, storage.Aborted{Producer: 7, First: 2, Last: 8}, storage.Aborted{Producer: 7, First: 70, Last: 71})

	if got := l.Aborted(1, 9, 70); got != nil {
		t.Errorf("aborted in [9,70): got %v, want none", got)
	}
	if got := l.Aborted(1, 71, 72); len(got) != 1 {
		t.Errorf("aborted in [71,72): got %v, want the one whose marker is there", got)
	}
	var old *storage.EpochError
	if b := l.send(txn(7, 4, 1)); !errors.As(b.Err, &old) {
		t.Errorf("fenced producer: got %v, want an EpochError", b.Err)
	}
	b := txn(7, 0, 1)
	b.Data = batch(batchSpec{values: []string{""}, producer: 7, epoch: 1, txn: true})
	wantStored(t, l.send(b), 72, false)
	b = &storage.Batch{Partition: 1, Data: batch(batchSpec{values: []string{""}, producer: 7, epoch: 1, sequence: 1})}
	if l.send(b); !errors.Is(b.Err, storage.ErrTxnState) {
		t.Errorf("plain batch in a transaction: got %v, want ErrTxnState", b.Err)
	}
}

// A marker decides for readers when it is committed, not when it is stored.
func TestAMarkerCountsWhenItIsCommitted(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.send(txn(7, 0, 3))
	must(t, l.store(marker(7, 0, false)))
	if got := l.LastStable(1); got != 0 {
		t.Errorf("last stable offset is %d before the marker is committed, want 0", got)
	}
	l.Commit(l.last())
	if got := l.LastStable(1); got != 4 {
		t.Errorf("last stable offset is %d, want 4", got)
	}
}

func TestControlBatchesPassTheirOwnCheck(t *testing.T) {
	t.Parallel()
	for _, commit := range []bool{true, false} {
		b := marker(5, 2, commit)
		must(t, b.Check())
		h, err := storage.ParseHeader(b.Data)
		must(t, err)
		if !h.Control() || !h.Transactional() || h.ProducerID != 5 || h.ProducerEpoch != 2 || h.Records != 1 {
			t.Errorf("got header %+v", h)
		}
	}
	plain := &storage.Batch{Data: storage.ControlBatch(5, 0, 0, true, 0)}
	if err := plain.Check(); err == nil {
		t.Error("a control batch passed as a plain one")
	}
}

// The bytes that the state of producers is made of are the same on every way to them.
func TestTheStateAtTheFrontDoesNotDependOnTheWay(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 4 << 10}}
	l := openLog(t, t.TempDir(), o)
	for i := range int32(200) {
		l.send(sent(int64(1+i%9), 0, i/9, 1))
		if i%10 == 0 {
			l.put(uint32(i), plain(fmt.Sprint(i), 2))
		}
	}
	var states [][]byte
	for _, lose := range []bool{false, true} {
		dir := l.crash()
		if lose {
			for _, name := range files(t, dir, ".idx") {
				removeFile(t, dir, name)
			}
		}
		again := openLog(t, dir, o)
		if lose {
			for _, name := range files(t, dir, ".idx") {
				removeFile(t, dir, name)
			}
		}
		if n, err := again.Retain(); n == 0 || err != nil {
			t.Fatalf("removed %d, %v", n, err)
		}
		states = append(states, again.Front().State)
	}
	if !bytes.Equal(states[0], states[1]) {
		t.Error("the state read from an index differs from that read from the segments")
	}
}
