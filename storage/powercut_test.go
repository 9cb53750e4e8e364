package storage_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// seeds is how many seeds a test of one goroutine tries: n, or more in the nightly run. Under the race detector, which
// takes ten times as long and finds nothing there, it is one, but at night.
func seeds(t testing.TB, n int64) int64 {
	t.Helper()
	times := os.Getenv("DAYBOOK_SEEDS")
	switch {
	case times == "" && raced:
		return 1
	case times == "":
		return n
	}
	m, err := strconv.ParseInt(times, 10, 64)
	must(t, err)
	return n * max(1, m)
}

// steps is how many steps a life of one goroutine takes: n, or fewer where seeds are.
func steps(n int) int {
	if raced && os.Getenv("DAYBOOK_SEEDS") == "" {
		return n / 3
	}
	return n
}

// enumeration cuts the power before every operation of a life and checks every disk that this could leave.
type enumeration struct {
	mem     *vfs.Mem
	disk    *vfs.Faulty
	cuts    vfs.Cuts
	nested  float64 // the share of the disks on whose recovery the power is cut again
	life    *life
	indexed bool                                  // the life keeps indexes of keys and tags
	check   func(disk *vfs.Mem, p promises) error // life.survives if nil
	tried   int
	found   error // the first broken promise; ends the run
}

func newEnumeration(rng *rand.Rand) *enumeration {
	e := &enumeration{mem: vfs.NewMem(), cuts: vfs.Cuts{Rng: rng, Random: 3, Most: 3}, nested: 0.02}
	e.disk = vfs.NewFaulty(e.mem)
	e.disk.Before = func(op vfs.Op, name string) {
		if op != vfs.OpRead {
			e.at(fmt.Sprint(op, " ", name))
		}
	}
	return e
}

// at checks the disks of a cut at this moment.
func (e *enumeration) at(before string) {
	if e.found != nil || e.life == nil {
		return
	}
	p := e.life.now
	e.cuts.At(e.mem, fmt.Sprint(p), func(disk *vfs.Mem, kept []vfs.Doubt) bool {
		e.tried++
		if e.cuts.Rng.Float64() < e.nested {
			e.again(disk.Crash(nil), p)
		}
		check := e.check
		if check == nil {
			check = e.life.survives
		}
		if err := check(disk, p); err != nil {
			e.found = fmt.Errorf("cut before %s, with %v kept: %w", before, kept, err)
		}
		return e.found == nil
	})
}

// again cuts the power while the journal recovers from a cut.
func (e *enumeration) again(disk *vfs.Mem, p promises) {
	cuts := vfs.Cuts{Rng: e.cuts.Rng, Random: 2, Most: 1}
	faulty := vfs.NewFaulty(disk)
	faulty.Before = func(op vfs.Op, name string) {
		if e.found != nil || op == vfs.OpRead {
			return
		}
		cuts.At(disk, "", func(second *vfs.Mem, kept []vfs.Doubt) bool {
			e.tried++
			if err := e.life.survives(second, p); err != nil {
				e.found = fmt.Errorf("second cut, in recovery before %s %s, with %v kept: %w", op, name, kept, err)
			}
			return e.found == nil
		})
	}
	o := e.life.opts
	o.FS = faulty
	if j, err := storage.Open("j", o); err == nil {
		_ = j.Close()
	}
}

// P1: whenever the power goes, in whatever order what was not synced reached the disk, the journal starts again with all
// that was acknowledged, at the same offsets, and nothing that was never written; it goes on from there, and starts
// again. So it does if the power goes again while it starts.
func TestPowerCutsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range seeds(t, 3) {
		e := newEnumeration(rand.New(rand.NewSource(seed)))
		e.run(t, seed, steps(100))
		if e.found != nil {
			t.Fatalf("seed %d: %s", seed, shorten(e.found))
		}
		tried += e.tried
	}
	t.Logf("%d disks", tried)
	if tried < 5_000 && !raced {
		t.Errorf("only %d disks were tried: the enumeration has gone blind", tried)
	}
}

// run lives a life on the disk, cutting the power all the way.
func (e *enumeration) run(t testing.TB, seed int64, steps int) {
	o := storage.Options{FS: e.disk, SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 12 << 10}}
	if seed%2 == 1 {
		o.Mode, o.ReadDurable, o.FlushEvery = storage.Replicated, true, 1<<62 // flushed when the life says so
	}
	e.life = newLife(t, o, e.cuts.Rng)
	e.life.indexed = e.indexed
	e.life.live(steps, func() bool { return e.found == nil })
	e.at("the end")
}

// The enumeration is worth something: it finds every disk that breaks one of its rules, and every rule that the journal
// could forget.
func TestPowerCutsFindADiskThatLies(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]vfs.Fault{
		"segments are not synced":             {Op: vfs.OpSync, Name: ".seg"},
		"the start file is not synced":        {Op: vfs.OpSync, Name: "start."},
		"one copy of the start file is never": {Op: vfs.OpWrite, Name: "start.1"},
		"the mark is not synced":              {Op: vfs.OpSync, Name: "mark"},
		"directories are not synced":          {Op: vfs.OpSyncDir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lie.Lie, lie.Keep = true, true
			for seed := range int64(4) {
				e := newEnumeration(rand.New(rand.NewSource(seed)))
				e.cuts.Most = 20
				e.disk.Inject(lie)
				e.run(t, seed&^1, 60)
				if e.found != nil {
					t.Log(shorten(e.found))
					return
				}
			}
			t.Error("was not found")
		})
	}
}

func shorten(err error) string {
	s := err.Error()
	if len(s) > 400 {
		s = s[:200] + " ... " + s[len(s)-200:]
	}
	return strings.ReplaceAll(s, "\n", " ")
}

// The same for a command log, of which raft cuts the front after snapshots, and all of it when one comes from elsewhere.
func TestPowerCutsLoseNoCommand(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 3) {
		rng := rand.New(rand.NewSource(seed))
		var first, last uint64 // acknowledged and not given up
		next := uint64(1)
		mem := vfs.NewMem()
		disk := vfs.NewFaulty(mem)
		o := storage.Options{SegmentBytes: 4 << 10, Commands: true}
		cuts := vfs.Cuts{Rng: rng, Random: 2, Most: 2}
		disk.Before = func(op vfs.Op, name string) {
			if op == vfs.OpRead || t.Failed() {
				return
			}
			cuts.At(mem, fmt.Sprint(first, last), func(cut *vfs.Mem, kept []vfs.Doubt) bool {
				if err := commandsSurvive(t, cut, o, first, last, next); err != nil {
					t.Errorf("seed %d: cut before %s %s, with %v kept: %v", seed, op, name, kept, err)
				}
				return !t.Failed()
			})
		}
		live := o
		live.FS = disk
		l, err := tryOpen(t, "j", live)
		must(t, err)
		for range 150 {
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
	}
}

func commandsSurvive(t testing.TB, disk *vfs.Mem, o storage.Options, first, last, next uint64) error {
	o.FS = disk
	l, err := tryOpen(t, "j", o)
	if err != nil {
		return err
	}
	defer l.Close()
	for n := first; n != 0 && n <= last; n++ {
		if err := l.command(n); err != nil {
			return fmt.Errorf("entry %d of %d to %d: %w", n, first, last, err)
		}
	}
	if low, _ := l.FirstIndex(); low > 0 { // whatever else came back is in order
		if err := l.DeleteRange(low, l.last()); err != nil {
			return err
		}
	}
	if err := l.storeCommand(next); err != nil {
		return err
	}
	return l.command(next)
}

// sameBatch says whether two batches are the same but for what the journal sets.
func sameBatch(a, b []byte) bool {
	return len(a) == len(b) && bytes.Equal(a[16:], b[16:])
}
