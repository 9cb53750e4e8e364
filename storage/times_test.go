package storage_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/storage"
)

var codecs = []storage.Compression{storage.None, storage.Gzip, storage.Snappy, storage.LZ4, storage.Zstd}

func (l *log) at(ms int64) int64 {
	l.t.Helper()
	f, ok, err := l.OffsetForTime(0, ms)
	if err != nil {
		l.t.Fatalf("time %d: %v", ms, err)
	}
	if !ok {
		return -1
	}
	if f.Timestamp < ms {
		l.t.Fatalf("time %d: found offset %d with time %d", ms, f.Offset, f.Timestamp)
	}
	return f.Offset
}

// The exact record, also inside a compressed batch; none behind the last.
func TestTimeFindsTheRecordInsideABatch(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs {
		l := openLog(t, t.TempDir(), storage.Options{})
		l.put(0, batch(batchSpec{times: []int64{2, 4, 6, 8}, codec: codec}))
		got := map[int64]int64{}
		for _, ms := range []int64{-5, 0, 2, 3, 4, 5, 8, 9} {
			got[ms] = l.at(ms)
		}
		want := map[int64]int64{-5: 0, 0: 0, 2: 0, 3: 1, 4: 1, 5: 2, 8: 3, 9: -1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("codec %d: %s", codec, d)
		}
	}
}

// The records of a LogAppendTime batch have the batch's time, all of them, and the base timestamp stays the producer's.
func TestLogAppendTimeIsTheTimeOfAllRecords(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs {
		l := openLog(t, t.TempDir(), storage.Options{})
		l.put(0, batch(batchSpec{times: []int64{2, 4, 6}, codec: codec}))
		l.put(0, batch(batchSpec{times: []int64{7, 900, 8}, codec: codec, appendAt: 500}))
		l.put(0, batch(batchSpec{times: []int64{510}, codec: codec}))
		got := map[int64]int64{}
		for _, ms := range []int64{6, 7, 8, 499, 500, 501, 600} {
			got[ms] = l.at(ms)
		}
		want := map[int64]int64{6: 2, 7: 3, 8: 3, 499: 3, 500: 3, 501: 6, 600: -1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("codec %d: %s", codec, d)
		}
		if f, ok, err := l.MaxTimestamp(0); err != nil || !ok || f.Offset != 6 || f.Timestamp != 510 {
			t.Errorf("codec %d: the largest time is %+v, %v, %v", codec, f, ok, err)
		}
		c, err := l.Read(0, 3, 1, -1)
		must(t, err)
		h, err := storage.ParseHeader(c.Pieces[0])
		if must(t, err); h.BaseTimestamp != 7 || h.MaxTimestamp != 500 {
			t.Errorf("codec %d: stored times are %d and %d, want the producer's 7 and the append's 500", codec, h.BaseTimestamp, h.MaxTimestamp)
		}
	}
}

// Times need not be in order; the answer is what a scan of all records gives, over segments and restarts, and
// never below the start.
func TestTimeEqualsAScanOfAllRecords(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 16 << 10})
	var times []int64
	for i := range 400 {
		var batchTimes []int64
		for range 1 + rng.Intn(6) {
			batchTimes = append(batchTimes, int64(1_000_000+i*100)+rng.Int63n(3_600_000)-1_800_000)
		}
		spec := batchSpec{times: batchTimes, codec: codecs[i%len(codecs)]}
		if i%17 == 0 { // of LogAppendTime batches all records have the batch's time
			spec.appendAt = batchTimes[0] + 5
			for k := range batchTimes {
				batchTimes[k] = spec.appendAt
			}
		}
		l.put(0, batch(spec))
		times = append(times, batchTimes...)
	}
	start := int64(0)
	for round := range 3 {
		for range 300 {
			ms := rng.Int63n(3_000_000) - 500_000
			want := int64(-1)
			for i := start; i < int64(len(times)); i++ {
				if times[i] >= ms {
					want = i
					break
				}
			}
			if got := l.at(ms); got != want {
				t.Fatalf("round %d, time %d: got %d, want %d", round, ms, got, want)
			}
		}
		wantMax, at := int64(-1<<62), int64(-1)
		for i := start; i < int64(len(times)); i++ {
			if times[i] > wantMax {
				wantMax, at = times[i], i
			}
		}
		if f, ok, err := l.MaxTimestamp(0); err != nil || !ok || f.Offset != at || f.Timestamp != wantMax {
			t.Fatalf("round %d: largest time is %+v, %v, %v; want offset %d with %d", round, f, ok, err, at, wantMax)
		}
		start = int64(len(times)) * int64(round+1) / 4
		if got, err := l.TrimBefore(0, start); got != start || err != nil {
			t.Fatalf("trimming to %d: got %d, %v", start, got, err)
		}
		l = openLog(t, l.crash(), l.opts)
	}
}

// A batch whose checksum holds, but whose records cannot be unpacked, does not hide what lies behind it.
func TestUnreadableRecordsDoNotBlockASearch(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for _, codec := range codecs {
		b := batch(batchSpec{times: []int64{5, 5}, codec: codec})
		for i := 61; i < len(b); i++ {
			b[i] = 0xff
		}
		l.put(0, recrc(b))
	}
	l.put(0, batch(batchSpec{times: []int64{7}}))
	if got := l.at(6); got != 10 {
		t.Errorf("got %d, want the record behind, 10", got)
	}
	if got := l.at(5); got != 0 {
		t.Errorf("got %d, want the unreadable batch, 0", got)
	}
}

func TestEmptyPartitionHasNoTimes(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(1, plain("x", 1))
	if got := l.at(0); got != -1 {
		t.Errorf("got %d, want none", got)
	}
	if _, ok, err := l.MaxTimestamp(0); ok || err != nil {
		t.Errorf("largest time: got %v, %v; want none", ok, err)
	}
	if s, e := l.Bounds(0); s != 0 || e != 0 {
		t.Errorf("bounds %d to %d, want 0 to 0", s, e)
	}
}

// A reader of a quiet partition stands where its last leader stopped, of which retention has left nothing: it has missed
// nothing, and must not be told that there is no such epoch.
func TestEpochOfWhichNothingIsLeftEndsWhereThePartitionStarts(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 1}})
	for _, term := range []uint64{2, 3, 7} {
		l.term = term
		l.noop()
		for i := range 200 {
			if term == 2 {
				l.put(1, plain(fmt.Sprint(i), 2))
			}
			l.put(0, plain(fmt.Sprint(i), 2))
		}
	}
	if n, err := l.Retain(); n == 0 || err != nil {
		t.Fatalf("removed %d segments, %v", n, err)
	}
	start, _ := l.Bounds(0)
	for range 2 {
		for _, epoch := range []int32{1, 2, 3} {
			if e, end := l.EpochEnd(1, epoch); e != epoch || end != 400 {
				t.Errorf("epoch %d of a partition that ends at 400: got epoch %d up to %d", epoch, e, end)
			}
			if e, end := l.EpochEnd(0, epoch); e != epoch || end != start {
				t.Errorf("epoch %d of a partition that starts at %d: got epoch %d up to %d", epoch, start, e, end)
			}
		}
		l = openLog(t, l.crash(), l.opts)
	}
}

func TestEpochEndFindsWhereALeaderStopped(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for _, term := range []uint64{2, 3, 7} {
		l.term = term
		l.noop()
		for i := range 20 {
			l.put(uint32(i%2), plain(fmt.Sprint(i), 2))
		}
	}
	for range 2 {
		for _, c := range []struct {
			asked, epoch int32
			end          int64
		}{{-1, -1, -1}, {1, 1, 0}, {2, 2, 20}, {3, 3, 40}, {5, 3, 40}, {7, 7, 60}, {9, 7, 60}} {
			if e, end := l.EpochEnd(1, c.asked); e != c.epoch || end != c.end {
				t.Errorf("epoch %d: got epoch %d up to %d, want %d up to %d", c.asked, e, end, c.epoch, c.end)
			}
		}
		l = openLog(t, l.crash(), l.opts)
	}
}
