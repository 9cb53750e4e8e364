package datadir_test

import (
	"errors"
	"math/rand"
	"syscall"
	"testing"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/internal/vfs"
)

// start counts one start, and returns its number.
func start(fsys vfs.FS) (uint64, error) {
	f, _, err := datadir.OpenFile(fsys, "d")
	if err != nil {
		return 0, err
	}
	err = f.CountStart()
	return f.Get().Starts, err
}

func newDisk(t *testing.T) (*vfs.Mem, *vfs.Faulty) {
	t.Helper()
	mem := vfs.NewMem()
	if err := errors.Join(mem.MkdirAll("d", 0o755), mem.SyncDir("d"), mem.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	return mem, vfs.NewFaulty(mem)
}

// A full disk keeps no node from starting, and every start has a number of its own, whether there was room or not.
func TestStartsAreCountedOnAFullDisk(t *testing.T) {
	t.Parallel()
	_, disk := newDisk(t)
	for want := uint64(1); want < 20; want++ {
		if want%4 < 2 {
			disk.Heal()
		} else {
			disk.Limit(0)
		}
		if got, err := start(disk); got != want || err != nil {
			t.Fatalf("start %d is counted as %d: %v", want, got, err)
		}
	}
}

// Where there never was room the start is refused, and says that some is needed.
func TestAFirstStartNeedsRoom(t *testing.T) {
	t.Parallel()
	_, disk := newDisk(t)
	disk.Limit(0)
	if _, err := start(disk); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want that the disk is full", err)
	}
	disk.Heal()
	if got, err := start(disk); got != 1 || err != nil {
		t.Fatalf("with room: counted as %d: %v", got, err)
	}
}

// Power that goes at any moment of a start, on a disk that is full or not, takes no number back that a start has had.
func TestNoStartHasANumberTwice(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		mem, disk := newDisk(t)
		last := uint64(0)
		for range 8 {
			if rng.Intn(2) == 0 {
				disk.Limit(0)
			}
			ops := []vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpAllocate, vfs.OpSyncDir}
			if rng.Intn(2) == 0 {
				disk.Inject(vfs.Fault{Op: ops[rng.Intn(len(ops))], Nth: 1 + rng.Intn(3), Keep: true})
			}
			if got, err := start(disk); err == nil {
				if got <= last {
					t.Fatalf("a start is counted as %d after one that was %d", got, last)
				}
				last = got
			}
			mem = mem.CrashClone(rng)
			disk = vfs.NewFaulty(mem)
		}
	}
}
