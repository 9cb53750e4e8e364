package raftgroup_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// What arrives while the disk is busy is written at once when it is free again: few writes, large ones, and as few
// syncs.
func TestWhatWaitsForTheDiskIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaulty(vfs.OS{})
	var writes, syncs atomic.Int64
	disk.Before = func(op vfs.Op, name string) {
		switch {
		case !strings.HasSuffix(name, ".seg") && !strings.Contains(name, "spare-"):
		case op == vfs.OpWrite:
			writes.Add(1)
		case op == vfs.OpSync:
			syncs.Add(1)
		}
	}
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{FS: disk}})
	release, stuck := make(chan struct{}), make(chan struct{})
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Name: ".seg", Stall: release, Stalled: stuck})
	const batches = 4000
	value := strings.Repeat("v", 1000)
	var answered sync.WaitGroup
	add := func() {
		answered.Add(1)
		must(t, g.Append(context.Background(), []*storage.Batch{{Data: storagetest.Batch(value)}}, func(err error) {
			if err != nil {
				t.Error(err)
			}
			answered.Done()
		}))
	}
	add()
	<-stuck
	writes.Store(0)
	syncs.Store(0)
	for range batches {
		add()
	}
	close(release)
	answered.Wait()
	// Some were proposed one by one before the queue filled.
	if n := writes.Load(); n == 0 || batches*1000/n < 64<<10 || syncs.Load() > 2*n+2 {
		t.Errorf("%d batches of 1 kB took %d writes and %d syncs", batches, n, syncs.Load())
	}
}
