package storage_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/storage"
)

// tagLog holds batches of one table each, in partition 0, and which offsets are whose.
type tagLog struct {
	*log
	batches map[string][]int64
}

func newTagLog(t testing.TB, rounds int) *tagLog {
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: 16 << 10})
	l.KeepIndexes(storage.Indexes{Tags: true})
	x := &tagLog{log: l, batches: map[string][]int64{}}
	rng := rand.New(rand.NewSource(3))
	for i := range rounds {
		table := fmt.Sprint("shop.t", rng.Intn(20))
		header := [2]string{storage.TableHeader, table}
		if i%7 == 0 {
			header[0] = storage.TagHeader
		}
		records := make([]keyed, 1+rng.Intn(4))
		for k := range records {
			records[k] = keyed{key: "k", value: fmt.Sprintf("%0200d", i), headers: [][2]string{{"other", "x"}, header}}
		}
		base := x.put(0, keyedBatch(storage.None, records...))[0]
		x.batches[table] = append(x.batches[table], base)
	}
	return x
}

// read reads a tag from the start to the end, and returns the offsets of the batches and how many reads that took.
func (x *tagLog) read(t testing.TB, tag string) (got []int64, reads int) {
	t.Helper()
	_, end := x.Bounds(0)
	for offset := int64(0); offset < end; reads++ {
		c, err := x.ReadTagged(0, offset, 10_000, -1, tag)
		must(t, err)
		if c.Next <= offset {
			t.Fatalf("reading %s at %d of %d does not move on", tag, offset, end)
		}
		for _, p := range c.Pieces {
			got = append(got, offsets(p)...)
		}
		offset = c.Next
		c.Release()
	}
	return got, reads
}

func (x *tagLog) indexed(t testing.TB) {
	t.Helper()
	eventually(t, "the tag index of every segment", func() bool {
		got, _ := x.read(t, "no such tag")
		return len(got) == 0
	})
}

// A reader of a tag gets every batch that holds it, none of those that do not, and passes what it leaves out.
func TestAReaderOfATagGetsItsBatches(t *testing.T) {
	t.Parallel()
	x := newTagLog(t, 500)
	x.indexed(t)
	for tag, want := range x.batches {
		got, reads := x.read(t, tag)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("batches of %s (-want +got):\n%s", tag, diff)
		}
		if reads > 20 {
			t.Errorf("%s took %d reads", tag, reads)
		}
	}
}

// What is not indexed is served whole: never a batch too few, whatever became of the files.
func TestAReaderOfATagMissesNothingWithoutTheIndex(t *testing.T) {
	t.Parallel()
	x := newTagLog(t, 300)
	x.indexed(t)
	for _, f := range files(t, x.dir, ".tix") {
		path := filepath.Join(x.dir, f)
		b, err := os.ReadFile(path)
		must(t, err)
		b[len(b)/2] ^= 1
		must(t, os.WriteFile(path, b, 0o644))
	}
	must(t, x.Close())
	x.log = openLog(t, x.dir, x.opts)
	x.check(t) // by and by made anew
	x.indexed(t)
	x.check(t)
}

func (x *tagLog) check(t testing.TB) {
	t.Helper()
	for tag, want := range x.batches {
		got, _ := x.read(t, tag)
		has := map[int64]bool{}
		for _, o := range got {
			has[o] = true
		}
		for _, o := range want {
			if !has[o] {
				t.Fatalf("batch %d of %s is missing", o, tag)
			}
		}
	}
}

// Transaction markers go to the readers of every tag: without them later records look aborted.
func TestMarkersBelongToEveryTag(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.KeepIndexes(storage.Indexes{Tags: true})
	l.put(0, batch(batchSpec{values: []string{"a"}, producer: 1, txn: true}))
	marker := &storage.Batch{Marker: true, Data: storage.ControlBatch(1, 0, 0, false, 1)}
	must(t, l.store(marker))
	must(t, marker.Err)
	l.Commit(l.last())
	x := &tagLog{log: l}
	eventually(t, "the index", func() bool {
		got, _ := x.read(t, "t")
		return cmp.Equal(got, []int64{1})
	})
}

// An empty batch that covers a gap is one that parsers take.
func TestAGapBatchCoversItsOffsets(t *testing.T) {
	t.Parallel()
	h, err := storage.ParseHeader(storage.GapBatch(10, 29, 3, 5))
	must(t, err)
	if h.BaseOffset != 10 || h.LastDelta != 19 || h.Records != 0 || h.Size() != 61 || h.Magic != 2 || h.LeaderEpoch != 3 {
		t.Errorf("header is %+v", h)
	}
}
