package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

var mendOptions = storage.Options{SegmentBytes: 4 << 10}

// copies makes a journal of several segments, closes it in order, and returns so many copies of its disk.
func copies(t testing.TB, n int) (disks []*vfs.Mem) {
	mem := vfs.NewMem()
	o := mendOptions
	o.FS = mem
	l := &log{t: t, opts: o, term: 1}
	var err error
	l.Journal, err = storage.Open("j", o)
	must(t, err)
	for i := range 40 {
		l.put(uint32(i%2), plain(fmt.Sprintf("%d-%0150d", i, i), 1+i%4))
		if i%9 == 0 {
			l.noop()
		}
	}
	must(t, l.Close())
	names, err := mem.ReadDir("j")
	must(t, err)
	for _, name := range names { // indexes are written without a sync
		f, err := mem.OpenFile(path.Join("j", name), os.O_RDWR, 0)
		must(t, err)
		must(t, errors.Join(f.Sync(), f.Close()))
	}
	must(t, mem.SyncDir("j"))
	for range n {
		disks = append(disks, mem.Crash(nil))
	}
	return disks
}

// segments are the paths of the segments on a disk.
func segments(t testing.TB, disk vfs.FS) (paths []string) {
	names, err := disk.ReadDir("j")
	must(t, err)
	for _, n := range names {
		if path.Ext(n) == ".seg" {
			paths = append(paths, path.Join("j", n))
		}
	}
	slices.Sort(paths)
	return paths
}

// flip changes a bit of a file.
func flipAt(t testing.TB, disk vfs.FS, file string, at int64, bit int) {
	f, err := disk.OpenFile(file, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], at)
	must(t, err)
	must(t, f.Sync())
}

// from fetches from an open journal.
func from(j *storage.Journal) storage.Fetch {
	return func(position uint64, buf []byte) error {
		_, err := j.Stretch(position, buf)
		return err
	}
}

// openMended opens a journal, mending from another copy what keeps it from opening.
func openMended(t testing.TB, disk vfs.FS, healthy *storage.Journal) *log {
	t.Helper()
	o := mendOptions
	o.FS = disk
	for range 5 {
		l, err := tryOpen(t, "j", o)
		var d *storage.DamageError
		if !errors.As(err, &d) {
			must(t, err)
			return l
		}
		must(t, storage.MendClosed(disk, "j", d, healthy.Stretch))
	}
	t.Fatal("it does not open, however often it is mended")
	return nil
}

// checkAll checks all sealed segments and returns what is damaged.
func checkAll(t testing.TB, j *storage.Journal) (found []*storage.DamageError) {
	t.Helper()
	for at := uint64(0); ; {
		next, err := j.Check(at, func(int) error { return nil })
		var d *storage.DamageError
		if errors.As(err, &d) {
			found = append(found, d)
		} else {
			must(t, err)
		}
		if next == 0 {
			return found
		}
		at = next
	}
}

// mendAll mends all that is known to be damaged.
func mendAll(t testing.TB, j *storage.Journal, fetch storage.Fetch) {
	t.Helper()
	for _, d := range j.Damages() {
		must(t, j.Mend(d.Position, fetch))
	}
	if left := j.Damages(); len(left) > 0 {
		t.Fatalf("still damaged: %v", left)
	}
}

// same says in what two journals differ.
func same(t testing.TB, got, want *log) {
	t.Helper()
	for partition := range uint32(2) {
		if !bytes.Equal(got.contents(partition), want.contents(partition)) {
			t.Fatalf("partition %d is not what the other copy has", partition)
		}
	}
	for i := uint64(1); i <= want.last(); i++ {
		g, err := got.Frame(i)
		must(t, err)
		w, err := want.Frame(i)
		must(t, err)
		if !bytes.Equal(g, w) {
			t.Fatalf("entry %d is not what the other copy has", i)
		}
	}
}

// Whichever bit of a sealed segment flips, it is found, and mended from a healthy copy.
func TestAnyBitOfASealedSegmentIsMendedFromAnotherCopy(t *testing.T) {
	t.Parallel()
	disks := copies(t, 2)
	healthy := openMended(t, disks[0], nil)
	rng := rand.New(rand.NewSource(1))
	paths := segments(t, disks[1])
	for n := range seeds(t, 150) {
		disk := disks[1].Crash(nil)
		k := rng.Intn(len(paths) - 1)
		used := positionOf(t, paths[k+1]) - positionOf(t, paths[k])
		at := rng.Int63n(used)
		flipAt(t, disk, paths[k], at, rng.Intn(8))
		told := 0
		o := mendOptions
		o.FS, o.OnDamage = disk, func(*storage.DamageError) { told++ }
		if l, err := tryOpen(t, "j", o); err == nil { // else it is found at the start
			if found := checkAll(t, l.Journal); len(found) != 1 || found[0].Offset > at || found[0].Offset+int64(found[0].End-found[0].Position) <= at {
				t.Fatalf("flip %d at %d of %s: got %v, want one damage around it", n, at, paths[k], found)
			}
			if told != 1 {
				t.Fatalf("was told %d times, want once", told)
			}
			mendAll(t, l.Journal, from(healthy.Journal))
			if found := checkAll(t, l.Journal); len(found) > 0 {
				t.Fatalf("flip %d: mended, and still damaged: %v", n, found)
			}
			same(t, l, healthy)
			must(t, l.Close())
		}
		l := openMended(t, disk, healthy.Journal)
		if found := checkAll(t, l.Journal); len(found) > 0 {
			t.Fatalf("flip %d: opened again it is damaged: %v", n, found)
		}
		same(t, l, healthy)
		l.put(0, plain("goes on", 1))
		must(t, l.Close())
		if r, err := storage.VerifyFS(disk, "j"); err != nil || len(r.Problems) > 0 {
			t.Fatalf("flip %d: %v, %v", n, r.Problems, err)
		}
		if names, err := disk.ReadDir("j/quarantine-mended"); err != nil || len(names) != 1 {
			t.Fatalf("the damaged bytes are not kept: %v, %v", names, err)
		}
	}
}

// positionOf is the journal position that a segment's name tells.
func positionOf(t testing.TB, file string) (n int64) {
	_, err := fmt.Sscanf(path.Base(file), "%d.seg", &n)
	must(t, err)
	return n
}

// Several copies damaged at different places mend each other.
func TestCopiesThatAreDamagedAtDifferentPlacesMendEachOther(t *testing.T) {
	t.Parallel()
	disks := copies(t, 3)
	paths := segments(t, disks[0])
	flipAt(t, disks[0], paths[1], 900, 3)
	flipAt(t, disks[0], paths[3], 1500, 0)
	flipAt(t, disks[1], paths[1], 2500, 1)
	flipAt(t, disks[1], paths[2], 100, 1)
	a, b, whole := openMended(t, disks[0], nil), openMended(t, disks[1], nil), openMended(t, disks[2], nil)
	if x, y := checkAll(t, a.Journal), checkAll(t, b.Journal); len(x) != 2 || len(y) != 2 {
		t.Fatalf("got %v and %v, want two damages each", x, y)
	}
	mendAll(t, a.Journal, from(b.Journal))
	mendAll(t, b.Journal, from(a.Journal))
	same(t, a, whole)
	same(t, b, whole)
}

// A copy that is damaged at the same place mends nothing, and leaves all as it was.
func TestBytesThatDoNotFitAreNotTaken(t *testing.T) {
	t.Parallel()
	disks := copies(t, 3)
	paths := segments(t, disks[0])
	flipAt(t, disks[0], paths[1], 900, 3)
	flipAt(t, disks[1], paths[1], 910, 5)
	a, b, whole := openMended(t, disks[0], nil), openMended(t, disks[1], nil), openMended(t, disks[2], nil)
	found := checkAll(t, a.Journal)
	before, err := vfs.ReadFile(disks[0], paths[1])
	must(t, err)
	other := func(position uint64, buf []byte) error { // a frame that is whole, and of somewhere else
		frame, err := whole.Frame(3)
		copy(buf, frame)
		return err
	}
	silent := func(uint64, []byte) error { return errors.New("nobody answers") }
	for _, fetch := range []storage.Fetch{from(b.Journal), other, silent} {
		if err := a.Mend(found[0].Position, fetch); err == nil {
			t.Fatal("it was mended by bytes that do not fit")
		}
		after, err := vfs.ReadFile(disks[0], paths[1])
		must(t, err)
		if !bytes.Equal(before, after) || len(a.Damages()) != 1 {
			t.Fatal("a mending that failed changed something")
		}
	}
	if err := a.Mend(found[0].Position, from(b.Journal)); !errors.Is(err, storage.ErrNotMended) {
		t.Errorf("got %v, want ErrNotMended", err)
	}
	mendAll(t, a.Journal, from(whole.Journal))
	same(t, a, whole)
}

// Damage in the segment that is being written to is mended too: it is sealed first.
func TestDamageInTheOpenSegmentIsMended(t *testing.T) {
	t.Parallel()
	disks := copies(t, 2)
	paths := segments(t, disks[0])
	a, whole := openMended(t, disks[0], nil), openMended(t, disks[1], nil)
	flipAt(t, disks[0], paths[len(paths)-1], 300, 2)
	if _, err := a.tryContents(0); err == nil {
		_, err = a.tryContents(1)
		if err == nil {
			t.Fatal("no reader finds the damage")
		}
	}
	mendAll(t, a.Journal, from(whole.Journal))
	same(t, a, whole)
	a.put(1, plain("goes on", 1))
	must(t, a.Close())
	openMended(t, disks[0], nil)
}

// What may still be cut off is not mended.
func TestOnlyWhatIsCommittedIsMended(t *testing.T) {
	t.Parallel()
	disks := copies(t, 1)
	o := mendOptions
	o.FS = disks[0]
	j, err := storage.Open("j", o)
	must(t, err)
	defer j.Close()
	fetch := func(uint64, []byte) error { t.Error("asked another copy"); return nil }
	if err := j.Mend(uint64(positionOf(t, segments(t, disks[0])[1])), fetch); !errors.Is(err, storage.ErrNotCommitted) {
		t.Errorf("got %v, want ErrNotCommitted", err)
	}
}

// A power cut at any moment of mending leaves a journal that is mended, or damaged as before and can be mended again.
func TestMendingSurvivesPowerCuts(t *testing.T) {
	t.Parallel()
	disks := copies(t, 2)
	paths := segments(t, disks[0])
	healthy := openMended(t, disks[1], nil)
	for _, closed := range []bool{false, true} {
		mem := disks[0].Crash(nil)
		flipAt(t, mem, paths[1], 900, 3)
		if closed {
			f, err := mem.OpenFile(strings.TrimSuffix(paths[1], ".seg")+".idx", os.O_RDWR, 0) // without it the segment is read at the start
			must(t, err)
			_, err = f.WriteAt(make([]byte, 100), 0)
			must(t, err)
			must(t, f.Sync())
		}
		disk := vfs.NewFaulty(mem)
		cuts := vfs.Cuts{Rng: rand.New(rand.NewSource(2)), Random: 3, Most: 6}
		tried := 0
		disk.Before = func(op vfs.Op, name string) {
			if op == vfs.OpRead {
				return
			}
			cuts.At(mem, "", func(cut *vfs.Mem, kept []vfs.Doubt) bool {
				tried++
				l := openMended(t, cut, healthy.Journal)
				checkAll(t, l.Journal)
				mendAll(t, l.Journal, from(healthy.Journal))
				same(t, l, healthy)
				must(t, l.Close())
				return true
			})
		}
		l := openMended(t, disk, healthy.Journal)
		checkAll(t, l.Journal)
		mendAll(t, l.Journal, from(healthy.Journal))
		disk.Before = nil
		if tried < 10 {
			t.Errorf("%d disks were tried, want more", tried)
		}
	}
}

// An error of the disk at any step of mending leaves a journal that goes on being used, and can be mended later.
func TestMendingSurvivesErrorsOfTheDisk(t *testing.T) {
	t.Parallel()
	disks := copies(t, 2)
	paths := segments(t, disks[0])
	healthy := openMended(t, disks[1], nil)
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir, vfs.OpRename, vfs.OpRemove, vfs.OpRead} {
		for nth := 1; ; nth++ {
			disk := vfs.NewFaulty(disks[0].Crash(nil))
			flipAt(t, disk, paths[1], 900, 3)
			l := openMended(t, disk, healthy.Journal)
			found := checkAll(t, l.Journal)
			if len(found) == 0 {
				t.Fatalf("%s %d: nothing is found", op, nth)
			}
			began := disk.Count(op)
			disk.Inject(vfs.Fault{Op: op, Nth: nth, Err: syscall.ENOSPC})
			err := l.Mend(found[0].Position, from(healthy.Journal))
			reached := disk.Count(op)-began >= nth
			disk.Heal()
			if err != nil && !reached {
				t.Fatalf("%s %d: %v", op, nth, err)
			}
			if l.Err() != nil {
				t.Fatalf("%s %d: the journal became read-only: %v", op, nth, l.Err())
			}
			checkAll(t, l.Journal)
			mendAll(t, l.Journal, from(healthy.Journal))
			same(t, l, healthy)
			l.put(0, plain("goes on", 1))
			must(t, l.Close())
			openMended(t, disk, nil)
			if !reached {
				break
			}
		}
	}
}

// Who reads good batches of a segment keeps them while it is mended.
func TestReadersKeepWhatTheyReadWhileASegmentIsMended(t *testing.T) {
	t.Parallel()
	mem := copies(t, 2)
	dir := t.TempDir()
	names, err := mem[0].ReadDir("j")
	must(t, err)
	for _, n := range names {
		b, err := vfs.ReadFile(mem[0], "j/"+n)
		must(t, err)
		must(t, vfs.WriteFile(vfs.OS{}, path.Join(dir, n), b, 0o644))
	}
	healthy := openMended(t, mem[1], nil)
	flipAt(t, vfs.OS{}, path.Join(dir, path.Base(segments(t, mem[0])[1])), 2500, 3)
	l := openLog(t, dir, mendOptions)
	_, end := l.Bounds(0)
	var held []*storage.Chunk
	var was [][]byte
	for at := int64(0); at < end; at++ {
		if c, err := l.Read(0, at, 1, -1); err == nil {
			held, was = append(held, c), append(was, bytes.Join(c.Pieces, nil))
		}
	}
	if found := checkAll(t, l.Journal); len(found) != 1 || len(held) == 0 {
		t.Fatalf("%d chunks are held, and %v is damaged", len(held), found)
	}
	mendAll(t, l.Journal, from(healthy.Journal))
	for i, c := range held {
		if !bytes.Equal(was[i], bytes.Join(c.Pieces, nil)) {
			t.Fatalf("what was read at chunk %d changed", i)
		}
		c.Release()
	}
	same(t, l, healthy)
}

// Replicas that end their files at other places have the same chain.
func TestLinksAreTheSameWhereverFilesEnd(t *testing.T) {
	t.Parallel()
	a := openMended(t, copies(t, 1)[0], nil)
	b := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 9 << 10})
	for i := uint64(1); i <= a.last(); i++ {
		frame, err := a.Frame(i)
		must(t, err)
		var entry raft.Log
		must(t, a.GetLog(i, &entry))
		entry.Extensions = frame
		must(t, b.StoreLog(&entry))
	}
	b.Commit(b.last())
	for _, pair := range [][2]*log{{a, b}, {b, a}} {
		links := pair[0].Links(0, 100)
		if len(links) < 2 {
			t.Fatalf("%d links, want some", len(links))
		}
		for _, want := range links {
			got, err := pair[1].LinkAt(want.Index)
			must(t, err)
			if got != want {
				t.Errorf("behind entry %d: got %+v, want %+v", want.Index, got, want)
			}
		}
		if left := pair[0].Links(links[0].Index, 100); len(left) != len(links)-1 {
			t.Errorf("behind the first of %d links there are %d", len(links), len(left))
		}
	}
}
