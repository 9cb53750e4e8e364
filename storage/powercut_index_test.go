package storage_test

import (
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// recipe is what the record of a batch of a life holds.
type recipe struct{ key, tag string }

// stored is a batch that a partition holds.
type stored struct {
	recipe
	partition uint32
	offset    int64
	time      int64
}

// lookups asks a journal everything that is answered from an index file, and compares with what its partitions hold.
type lookups struct {
	l     *life
	rng   *rand.Rand
	files map[string]int // index files that a cut left, by suffix
}

// survives opens a disk that a cut left. Answers are right from the first one on, whatever is left of the index files, and
// again once they were made anew. A bit that flips in one of them changes nothing.
func (x *lookups) survives(disk *vfs.Mem, p promises) (err error) {
	if p.Reset {
		return nil
	}
	indexes, err := x.indexFiles(disk)
	if err != nil {
		return err
	}
	if n := len(indexes); n > 0 && x.rng.Intn(2) == 0 {
		file := indexes[x.rng.Intn(n)]
		b, err := vfs.ReadFile(disk, file)
		if err != nil {
			return err
		}
		if len(b) > 0 {
			bit := uint64(x.rng.Intn(8 * len(b)))
			if x.rng.Intn(2) == 0 { // most of a small index file is what nobody looks at
				bit %= uint64(8 * min(100, len(b)))
			}
			if err := flip(disk, file, bit); err != nil {
				return err
			}
			defer func() {
				if err != nil {
					err = fmt.Errorf("bit %d of %s is flipped: %w", bit, file, err)
				}
			}()
		}
	}
	for start := range 2 {
		if err = x.open(disk, p); err != nil {
			return fmt.Errorf("start %d: %w", start+1, err)
		}
		var kept []vfs.Doubt // nothing of the index files that were made reached the disk, or all of it
		if x.rng.Intn(2) == 0 {
			kept = disk.Doubts()
		}
		disk = disk.Crash(kept)
	}
	return nil
}

// indexFiles lists and counts the index files on a disk.
func (x *lookups) indexFiles(disk *vfs.Mem) (all []string, err error) {
	names, err := disk.ReadDir("j")
	for _, name := range names {
		if ext := filepath.Ext(name); slices.Contains([]string{".idx", ".kix", ".tix"}, ext) {
			x.files[ext]++
			all = append(all, "j/"+name)
		}
	}
	return all, err
}

// open opens a disk and asks, makes the indexes, and asks again.
func (x *lookups) open(disk *vfs.Mem, p promises) error {
	o := x.l.opts
	o.FS = disk
	j, err := storage.Open("j", o)
	if err != nil {
		return err
	}
	defer j.Close()
	j.KeepIndexesByHand(storage.Indexes{Keys: true, Tags: true})
	after := &log{t: x.l.t, opts: o, Journal: j, term: x.l.term}
	after.Commit(after.last())
	contents, err := x.l.check(after, p)
	if err != nil {
		return err
	}
	batches, err := x.batches(contents)
	if err != nil {
		return err
	}
	for range 2 {
		if err := errors.Join(x.keys(after, batches), x.tags(after, batches), x.times(after, batches)); err != nil {
			return err
		}
		j.MakeIndexes()
	}
	return nil
}

// batches takes apart what the partitions hold.
func (x *lookups) batches(contents [lifeParts][]byte) (all []stored, err error) {
	for id, rest := range contents {
		for len(rest) > 0 {
			h, err := storage.ParseHeader(rest)
			if err != nil {
				return nil, err
			}
			all = append(all, stored{x.l.holds[string(rest[17:h.Size()])], uint32(id), h.BaseOffset, h.MaxTimestamp})
			rest = rest[h.Size():]
		}
	}
	return all, nil
}

func (x *lookups) keys(j *log, batches []stored) error {
	for k := range 6 {
		key := fmt.Sprint("k", k) // nothing holds the last one
		var want, got []string
		for _, b := range batches {
			if b.key == key {
				want = append(want, fmt.Sprint(b.partition, "/", b.offset))
			}
		}
		for r, err := range j.Find([]byte(key), x.rng.Intn(2) == 0) {
			if err != nil {
				return fmt.Errorf("finding %s: %w", key, err)
			}
			got = append(got, fmt.Sprint(r.Partition, "/", r.Offset))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Errorf("records of %s -want +got: %s", key, cmp.Diff(want, got))
		}
	}
	return nil
}

// tags reads each partition by a tag: batches too many may come, as long as an index is missing, and none is left out.
func (x *lookups) tags(j *log, batches []stored) error {
	tag := fmt.Sprint("t", x.rng.Intn(5))
	for id := range uint32(lifeParts) {
		var got []int64
		start, end := j.Bounds(id)
		for offset := start; offset < end; {
			c, err := j.ReadTagged(id, offset, 700, -1, tag)
			if err != nil {
				return fmt.Errorf("reading %s: %w", tag, err)
			}
			if c.Next <= offset {
				return fmt.Errorf("reading %s at %d of %d does not move on", tag, offset, end)
			}
			for _, p := range c.Pieces {
				got = append(got, offsets(p)...)
			}
			offset = c.Next
			c.Release()
		}
		if !slices.IsSorted(got) {
			return fmt.Errorf("partition %d: batches of %s come as %v", id, tag, got)
		}
		for _, b := range batches {
			if b.partition == id && b.tag == tag && !slices.Contains(got, b.offset) {
				return fmt.Errorf("partition %d: batch %d of %s is missing in %v", id, b.offset, tag, got)
			}
		}
	}
	return nil
}

func (x *lookups) times(j *log, batches []stored) error {
	for id := range uint32(lifeParts) {
		for range 3 {
			ms, want := x.rng.Int63n(1100), int64(-1)
			for _, b := range batches {
				if b.partition == id && b.time >= ms && want < 0 {
					want = b.offset
				}
			}
			got, ok, err := j.OffsetForTime(id, ms)
			if err != nil || ok != (want >= 0) || ok && got.Offset != want {
				return fmt.Errorf("partition %d: the first record from %d on is %+v (%v, %v), want %d", id, ms, got, ok, err, want)
			}
		}
	}
	return nil
}

// A power cut leaves any part of the index files, of keys, of tags, and of batches and times, and none is synced: every
// answer is what the records themselves say, from the first one after the start on.
func TestPowerCutsLeaveNoWrongIndex(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]int64{"durable": 0, "replicated": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, tried := map[string]int{}, 0
			for n := range seeds(t, 1) {
				rng := rand.New(rand.NewSource(seed + 2*n))
				e := newEnumeration(rng)
				x := &lookups{rng: rng, files: files}
				e.check = func(disk *vfs.Mem, p promises) error {
					x.l = e.life
					return x.survives(disk, p)
				}
				e.indexed = true
				e.run(t, seed+2*n, steps(45))
				if e.found != nil {
					t.Fatalf("seed %d: %s", seed+2*n, shorten(e.found))
				}
				tried += e.tried
			}
			t.Logf("%d disks with %v", tried, files)
			for _, suffix := range []string{".idx", ".kix", ".tix"} {
				if files[suffix] < 500 && !raced {
					t.Errorf("only %d disks held a file %s: the enumeration has gone blind", files[suffix], suffix)
				}
			}
		})
	}
}
