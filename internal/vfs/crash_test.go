package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// inDoubt is a file system with one file of three sectors, synced, and then: its middle sector written, the file made
// longer, another name for it, and a new file.
func inDoubt(t testing.TB) *vfs.Mem {
	m := vfs.NewMem()
	must(t, m.MkdirAll("d", 0o755))
	f := open(t, m, "d/f", rw)
	write := func(f vfs.File, b byte, off, n int64) {
		_, err := f.WriteAt(bytes.Repeat([]byte{b}, int(n)), off)
		must(t, err)
	}
	write(f, 'a', 0, 1536)
	must(t, f.Sync())
	must(t, m.SyncDir("d"))
	write(f, 'b', 500, 600) // parts of three sectors
	must(t, f.Allocate(0, 4096))
	must(t, m.Rename("d/f", "d/g"))
	return m
}

func TestDoubtsAreSectorsSizesAndNames(t *testing.T) {
	t.Parallel()
	m := inDoubt(t)
	got := fmt.Sprint(m.Doubts())
	for _, want := range []string{"write d/g at 500", "write d/g at 512", "write d/g at 1024", "allocate d/g", "rename d/g"} {
		if !strings.Contains(got, want) {
			t.Errorf("doubts are %s, want %s among them", got, want)
		}
	}
	if len(m.Doubts()) != 5 {
		t.Errorf("doubts are %s, want 5", got)
	}
}

// With few doubts every combination is made, and no disk twice.
func TestCutsMakeEverySubsetOfFewDoubts(t *testing.T) {
	t.Parallel()
	m := inDoubt(t)
	cuts := vfs.Cuts{Rng: rand.New(rand.NewSource(1))}
	seen := map[string]int{}
	for range 2 { // the second time all are known
		cuts.At(m, "", func(disk *vfs.Mem, kept []vfs.Doubt) bool {
			names, err := disk.ReadDir("d")
			must(t, err)
			if len(names) != 1 {
				t.Fatalf("a rename is one step: the names are %v with %v kept", names, kept)
			}
			b, err := vfs.ReadFile(disk, "d/"+names[0])
			must(t, err)
			seen[fmt.Sprint(names, len(b), b[499], b[500], b[511], b[512], b[1023], b[1024], b[1099], b[1100])]++
			return true
		})
	}
	if len(seen) != 32 {
		t.Errorf("%d different disks, want 2 to the 5", len(seen))
	}
	for disk, n := range seen {
		if n != 1 {
			t.Errorf("disk %s was made %d times", disk, n)
		}
	}
}

// With many, the orderly losses are among those that are made: a write torn at each sector, and each change alone lost.
func TestCutsTearEveryWriteAtEverySector(t *testing.T) {
	t.Parallel()
	m := inDoubt(t)
	f := open(t, m, "d/g", rw)
	_, err := f.WriteAt(bytes.Repeat([]byte{'c'}, 8*512), 0)
	must(t, err)
	cuts := vfs.Cuts{Rng: rand.New(rand.NewSource(1)), Random: 10}
	torn, lost := map[int]bool{}, map[int]bool{}
	n := len(m.Doubts())
	cuts.At(m, "", func(_ *vfs.Mem, kept []vfs.Doubt) bool {
		prefix := true
		for i, d := range kept {
			prefix = prefix && d.String() == m.Doubts()[i].String()
		}
		if prefix {
			torn[len(kept)] = true
		}
		if len(kept) == n-1 {
			for i, d := range m.Doubts() {
				if i == len(kept) || kept[i].String() != d.String() {
					lost[i] = true
					break
				}
			}
		}
		return true
	})
	if len(torn) < n || len(lost) < n-4 { // what is overwritten, and a size that a write sets too, leave the same disk
		t.Errorf("of %d doubts %d prefixes and %d single losses were made", n, len(torn), len(lost))
	}
	most := 0
	limited := vfs.Cuts{Rng: rand.New(rand.NewSource(1)), Most: 4}
	limited.At(m, "", func(*vfs.Mem, []vfs.Doubt) bool { most++; return true })
	if most > 4 || most == 0 {
		t.Errorf("%d disks were made, want at most 4", most)
	}
}

func TestADiskCanLieFlipAndStall(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("d", 0o755))
	fsys := vfs.NewFaulty(m)
	f := open(t, fsys, "d/f", rw)
	must(t, fsys.SyncDir("d"))
	_, err := f.WriteAt([]byte("hello"), 0)
	must(t, err)
	fsys.Inject(vfs.Fault{Op: vfs.OpSync, Lie: true})
	must(t, f.Sync())
	if b, err := vfs.ReadFile(m.Crash(nil), "d/f"); err != nil || len(b) != 0 {
		t.Errorf("after a sync that was a lie the cut leaves %q, %v", b, err)
	}
	must(t, f.Sync())
	fsys.Inject(vfs.Fault{Op: vfs.OpRead, Flip: 8})
	for _, want := range []string{"hdllo", "hello"} {
		b := make([]byte, 5)
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != want {
			t.Errorf("read %q, %v; want %q", b, err, want)
		}
	}
	release, stalled, done := make(chan struct{}), make(chan struct{}), make(chan error)
	fsys.Inject(vfs.Fault{Op: vfs.OpWrite, Stall: release, Stalled: stalled})
	go func() {
		_, err := f.WriteAt([]byte("J"), 0)
		done <- err
	}()
	<-stalled
	if b, err := vfs.ReadFile(fsys, "d/f"); err != nil || string(b) != "hello" {
		t.Errorf("while a write stalls the file is %q, %v", b, err)
	}
	close(release)
	must(t, <-done)
	if b, err := vfs.ReadFile(fsys, "d/f"); err != nil || string(b) != "Jello" {
		t.Errorf("after the stall the file is %q, %v", b, err)
	}
}

func TestAWatchKnowsWhatHasNotReturned(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaulty(vfs.OS{})
	watch := vfs.NewWatch(disk)
	name := t.TempDir() + "/f"
	f := open(t, watch, name, rw)
	if p, ok := watch.Oldest(); ok {
		t.Errorf("%+v is on its way", p)
	}
	release, stalled, done := make(chan struct{}), make(chan struct{}), make(chan error)
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Stall: release, Stalled: stalled})
	before := time.Now()
	go func() { done <- f.Sync() }()
	<-stalled
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	p, ok := watch.Oldest()
	if !ok || p.Op != vfs.OpSync || p.Name != name || p.Since.Before(before) {
		t.Errorf("the oldest is %+v, %v", p, ok)
	}
	close(release)
	must(t, <-done)
	if _, ok := watch.Oldest(); ok || watch.Totals().Syncs != 1 || watch.Totals().Longest <= 0 {
		t.Errorf("after it returned: %v, %+v", ok, watch.Totals())
	}
	if _, ok := f.(vfs.Mapper); !ok {
		t.Error("a watched file can't be mapped")
	}
	disk.Inject(vfs.Fault{Op: vfs.OpWrite})
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want the disk's error", err)
	}
}

func TestADiskSaysHowMuchIsFree(t *testing.T) {
	t.Parallel()
	free, total, err := vfs.OS{}.Space(t.TempDir())
	if err != nil || free <= 0 || free > total {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
	if _, _, err := (vfs.OS{}).Space(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	disk := vfs.NewFaulty(vfs.OS{})
	disk.Limit(100)
	if free, _, err := disk.Space(t.TempDir()); err != nil || free != 100 {
		t.Errorf("%d bytes are free, %v; want 100", free, err)
	}
}
