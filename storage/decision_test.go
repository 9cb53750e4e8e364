package storage_test

import (
	"errors"
	"math"
	"testing"

	"github.com/daybook-data/daybook/storage"
)

// decided is a marker that carries the number of its decision.
func decided(producer int64, epoch int16, decision int32) *storage.Batch {
	return &storage.Batch{Partition: 1, Data: storage.ControlBatch(producer, epoch, decision, true, 1), Marker: true}
}

// began is a batch whose transaction was open as of a decision.
func began(producer int64, sequence, decision int32) *storage.Batch {
	b := txn(producer, sequence, 1)
	b.Began = decision
	return b
}

// A coordinator that was deposed, or a network that held a marker back, must not end the producer's next transaction:
// the clients of old versions go on with the same epoch.
func TestARepeatedMarkerEndsNothing(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	l.send(began(7, 0, 1))
	wantStored(t, l.send(decided(7, 0, 2)), 1, false)
	l.send(began(7, 1, 4)) // 2, the next transaction
	for range 2 {
		for _, decision := range []int32{2, 1} {
			if b := l.send(decided(7, 0, decision)); b.Err != nil || !b.Duplicate {
				t.Errorf("marker %d again: duplicate %v, error %v; want a duplicate", decision, b.Duplicate, b.Err)
			}
		}
		if got := l.LastStable(1); got != 2 {
			t.Errorf("last stable offset is %d, want 2: the second transaction is open", got)
		}
		for range 60 { // into another segment, whose index has the producers' state
			l.put(2, plain("x", 1))
		}
		l = openLog(t, l.crash(), l.opts)
	}
	wantStored(t, l.send(decided(7, 0, 5)), 3, false)
	if got := l.LastStable(1); got != 4 {
		t.Errorf("last stable offset is %d, want 4", got)
	}
}

// A batch that comes behind the marker of its transaction would open one that nobody ends.
func TestABatchBehindItsMarkerIsRefused(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.send(began(7, 0, 1))
	l.send(decided(7, 0, 2))
	for range 2 {
		late := l.send(began(7, 1, 1))
		if !errors.Is(late.Err, storage.ErrTxnState) {
			t.Errorf("late batch: offset %d, error %v; want ErrTxnState", late.Offset, late.Err)
		}
		if got := l.LastStable(1); got != 2 {
			t.Errorf("last stable offset is %d, want 2", got)
		}
		l = openLog(t, l.crash(), l.opts)
	}
	wantStored(t, l.send(began(7, 1, 3)), 2, false)
	// In one proposal the order counts too.
	end, late := decided(7, 0, 4), began(7, 2, 3)
	must(t, l.store(end, late))
	wantStored(t, end, 3, false)
	if !errors.Is(late.Err, storage.ErrTxnState) {
		t.Errorf("late batch of the same proposal: %v, want ErrTxnState", late.Err)
	}
}

// A producer that never was here gets the number from the marker of a transaction in which it sent nothing.
func TestAMarkerOfAnUnknownProducerIsRemembered(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	wantStored(t, l.send(decided(7, 0, 2)), 0, false)
	if b := l.send(began(7, 0, 1)); !errors.Is(b.Err, storage.ErrTxnState) {
		t.Errorf("late batch: offset %d, error %v; want ErrTxnState", b.Offset, b.Err)
	}
}

func TestDecisionsWrap(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	wantStored(t, l.send(decided(7, 0, math.MaxInt32)), 0, false)
	wantStored(t, l.send(decided(7, 0, math.MinInt32+1)), 1, false)
	if b := l.send(decided(7, 0, math.MaxInt32)); !b.Duplicate {
		t.Errorf("the marker before was stored again: %+v", b)
	}
}
