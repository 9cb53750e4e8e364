package storage_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"strconv"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// cutFS calls cut before every operation that changes the disk.
type cutFS struct {
	*vfs.Mem
	cut func()
}

func (c *cutFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	c.cut()
	f, err := c.Mem.OpenFile(name, flag, perm)
	return &cutFile{File: f, cut: c.cut}, err
}

func (c *cutFS) Rename(from, to string) error { c.cut(); return c.Mem.Rename(from, to) }
func (c *cutFS) Remove(name string) error     { c.cut(); return c.Mem.Remove(name) }
func (c *cutFS) SyncDir(name string) error    { c.cut(); return c.Mem.SyncDir(name) }

type cutFile struct {
	vfs.File
	cut func()
}

func (f *cutFile) WriteAt(p []byte, off int64) (int, error) { f.cut(); return f.File.WriteAt(p, off) }
func (f *cutFile) WritevAt(b [][]byte, off int64) (int64, error) {
	f.cut()
	return f.File.WritevAt(b, off)
}
func (f *cutFile) Sync() error               { f.cut(); return f.File.Sync() }
func (f *cutFile) Truncate(n int64) error    { f.cut(); return f.File.Truncate(n) }
func (f *cutFile) Allocate(o, n int64) error { f.cut(); return f.File.Allocate(o, n) }

// powerCut is a disk as a cut left it, and what had been promised by then.
type powerCut struct {
	disk         *vfs.Mem
	acked, start int64  // records acknowledged and kept
	vote         uint64 // acknowledged
}

// P1: whenever the power goes, in whatever order what was not synced reached the disk, the journal starts again with all
// that was acknowledged, at the same offsets; it goes on from there, and starts again.
func TestPowerCutsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 6) {
		rng := rand.New(rand.NewSource(seed))
		var cuts []powerCut
		now := powerCut{}
		disk := &cutFS{Mem: vfs.NewMem()}
		disk.cut = func() {
			if rng.Intn(6) == 0 {
				at := now
				at.disk = disk.CrashClone(rng)
				cuts = append(cuts, at)
			}
		}
		o := storage.Options{FS: disk, SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 12 << 10}}
		all := livePowerfully(t, o, rng, &now)
		for i, c := range cuts {
			c.check(t, o, all, fmt.Sprintf("seed %d, cut %d of %d", seed, i, len(cuts)))
		}
	}
}

// livePowerfully appends, cuts the end, trims the front and votes, and returns the values of all records by offset.
func livePowerfully(t *testing.T, o storage.Options, rng *rand.Rand, now *powerCut) []string {
	l, err := tryOpen(t, "j", o)
	must(t, err)
	var all []string
	for step := range 150 {
		switch rng.Intn(12) {
		case 0: // a tail that is stored but not committed, and cut off again
			keep := l.last()
			if keep == 0 {
				continue
			}
			for range 1 + rng.Intn(20) {
				must(t, l.store(&storage.Batch{Data: plain("uncommitted", 1+rng.Intn(4))}))
			}
			must(t, l.DeleteRange(keep+1, l.last()))
		case 1:
			before, _ := l.Bounds(0)
			now.start = before // what goes next may be gone
			_, err := l.Retain()
			must(t, err)
		case 2:
			must(t, l.SetUint64([]byte("CurrentTerm"), now.vote+1))
			now.vote++
		case 3:
			must(t, l.Close())
			l, err = tryOpen(t, "j", o)
			must(t, err)
		default:
			value := fmt.Sprint("value", step, string(bytes.Repeat([]byte{'v'}, rng.Intn(300))))
			all = append(all, value)
			got := l.put(0, batch(batchSpec{values: []string{value}}))[0]
			if got != int64(len(all)-1) {
				t.Fatalf("step %d: got offset %d, want %d", step, got, len(all)-1)
			}
			now.acked = int64(len(all))
		}
	}
	_ = l.Close()
	return all
}

func (c *powerCut) check(t *testing.T, o storage.Options, all []string, what string) {
	t.Helper()
	o.FS = c.disk
	for start := range 2 {
		l, err := tryOpen(t, "j", o)
		if err != nil {
			t.Fatalf("%s: start %d: %v", what, start+1, err)
		}
		first, end := l.Bounds(0)
		if end < c.acked {
			t.Fatalf("%s: start %d: the partition ends at %d, %d were acknowledged", what, start+1, end, c.acked)
		}
		offset := first
		for rest := l.contents(0); len(rest) > 0; offset++ {
			h, err := storage.ParseHeader(rest)
			must(t, err)
			if h.BaseOffset != offset {
				t.Fatalf("%s: offset %d where %d should be", what, h.BaseOffset, offset)
			}
			if offset < c.acked && !bytes.Contains(rest[:h.Size()], []byte(all[offset])) {
				t.Fatalf("%s: record %d is another one", what, offset)
			}
			if h.Records > 1 { // of the tail that was never committed
				offset += int64(h.Records) - 1
			}
			rest = rest[h.Size():]
		}
		if got, err := l.GetUint64([]byte("CurrentTerm")); err != nil || got < c.vote || got > c.vote+1 {
			t.Fatalf("%s: term is %d, %v; acknowledged was %d", what, got, err, c.vote)
		}
		if got := l.put(0, plain("more", 1))[0]; got != end {
			t.Fatalf("%s: the next record got offset %d, want %d", what, got, end)
		}
		must(t, l.Close())
		r, err := storage.VerifyFS(c.disk, "j")
		must(t, err)
		if len(r.Problems) > 0 {
			t.Fatalf("%s: %v", what, r.Problems)
		}
	}
}

// seeds is how many seeds a test tries: n, or more in the nightly run.
func seeds(t testing.TB, n int64) int64 {
	t.Helper()
	times := os.Getenv("DAYBOOK_SEEDS")
	if times == "" {
		return n
	}
	m, err := strconv.ParseInt(times, 10, 64)
	must(t, err)
	return n * max(1, m)
}

// The same for a command log, of which raft cuts the front after snapshots, and all of it when one comes from elsewhere.
func TestPowerCutsLoseNoCommand(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 4) {
		rng := rand.New(rand.NewSource(seed))
		type cut struct {
			disk        *vfs.Mem
			first, last uint64 // acknowledged and not given up
		}
		var cuts []cut
		var first, last uint64
		disk := &cutFS{Mem: vfs.NewMem()}
		disk.cut = func() {
			if rng.Intn(6) == 0 {
				cuts = append(cuts, cut{disk.CrashClone(rng), first, last})
			}
		}
		o := storage.Options{FS: disk, SegmentBytes: 4 << 10, Commands: true}
		l, err := tryOpen(t, "j", o)
		must(t, err)
		next := uint64(1)
		for range 200 {
			switch rng.Intn(10) {
			case 0: // a snapshot of our own
				if last > first {
					high := first + uint64(rng.Int63n(int64(last-first)))
					low := first
					first = high + 1
					must(t, l.DeleteRange(low, high))
				}
			case 1: // one from elsewhere
				if rng.Intn(4) == 0 && last > 0 {
					low, high := first, last
					first, last = 0, 0
					must(t, l.DeleteRange(low, high))
					next += uint64(rng.Intn(50))
				}
			default:
				must(t, l.storeCommand(next))
				if first == 0 {
					first = next
				}
				last = next
				next++
			}
		}
		_ = l.Close()
		for i, c := range cuts {
			o.FS = c.disk
			l, err := tryOpen(t, "j", o)
			if err != nil {
				t.Fatalf("seed %d, cut %d: %v", seed, i, err)
			}
			for n := c.first; n != 0 && n <= c.last; n++ {
				if err := l.command(n); err != nil {
					t.Fatalf("seed %d, cut %d: entry %d of %d to %d: %v", seed, i, n, c.first, c.last, err)
				}
			}
			if low, _ := l.FirstIndex(); low > 0 { // whatever else came back is in order
				must(t, l.DeleteRange(low, l.last()))
			}
			must(t, l.storeCommand(next))
			must(t, l.command(next))
			must(t, l.Close())
		}
	}
}
