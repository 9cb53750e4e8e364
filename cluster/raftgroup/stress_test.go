package raftgroup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// Everything at once on one group: writers, readers that check what they get, searches by time, trims, retention,
// watches, and a Close in the middle of it.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []storage.Mode{storage.Durable, storage.Replicated} {
		g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), QueueBytes: 64 << 10, Journal: storage.Options{
			Mode: mode, SegmentBytes: 16 << 10, IndexCache: 1, FlushEvery: time.Millisecond, Retention: storage.Retention{Bytes: 64 << 10},
		}})
		j := g.Journal()
		stop := make(chan struct{})
		var all sync.WaitGroup
		loop := func(f func() error) {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := f(); err != nil && !ended(err) {
						t.Errorf("mode %v: %v", mode, err)
						return
					}
				}
			})
		}
		var appended, read atomic.Int64
		for w := range uint32(4) {
			n := 0
			loop(func() error {
				n++
				_, err := put(g, w%2, fmt.Sprintf("partition %d of writer %d: %d", w%2, w, n))
				appended.Add(1)
				return err
			})
		}
		for p := range uint32(2) {
			loop(func() error { return follow(j, p, &read, stop) })
			loop(func() error {
				_, _, err := j.OffsetForTime(p, 0)
				return err
			})
			loop(func() error {
				start, end := j.Bounds(p)
				if start > end || j.LastStable(p) != end && j.LastStable(p) < start {
					return fmt.Errorf("bounds %d to %d", start, end)
				}
				_, err := j.TrimBefore(p, start+(end-start)/8)
				return err
			})
		}
		loop(func() error { _, err := g.Retain(); return err })
		enough := time.Now().Add(1500 * time.Millisecond)
		for late := enough.Add(time.Minute); time.Now().Before(enough) || (appended.Load() < 20 || read.Load() < 20) && time.Now().Before(late); {
			time.Sleep(10 * time.Millisecond)
		}
		must(t, g.Close())
		close(stop)
		all.Wait()
		if appended.Load() < 20 || read.Load() < 20 {
			t.Errorf("mode %v: appended %d, read %d", mode, appended.Load(), read.Load())
		}
	}
}

// ended says whether an error is the end of the group or the work of retention.
func ended(err error) bool {
	var outside *storage.RangeError
	return errors.Is(err, raftgroup.ErrClosed) || errors.Is(err, storage.ErrClosed) || errors.As(err, &outside)
}

// follow waits for new data of a partition, reads it, and checks whose it is.
func follow(j *storage.Journal, p uint32, read *atomic.Int64, stop <-chan struct{}) error {
	woken := make(chan struct{}, 1)
	defer j.Notify(woken, p)()
	_, offset := j.Bounds(p)
	for range 20 {
		select {
		case <-woken:
		case <-stop:
			return nil
		case <-j.Failed():
			return nil
		}
		c, err := j.Read(p, offset, 4<<10, -1)
		if err != nil {
			return err
		}
		for _, piece := range c.Pieces {
			for len(piece) > 0 {
				h, err := storage.ParseHeader(piece)
				if err != nil {
					return err
				}
				if h.BaseOffset != offset || !strings.Contains(string(piece[:h.Size()]), fmt.Sprintf("partition %d of", p)) {
					return fmt.Errorf("partition %d: wrong batch at %d, wanted %d", p, h.BaseOffset, offset)
				}
				offset++
				read.Add(1)
				piece = piece[h.Size():]
			}
		}
		c.Release()
	}
	return nil
}

// A caller that gives up while the queue is full has appended nothing.
func TestAFullQueueCanBeGivenUp(t *testing.T) {
	t.Parallel()
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), QueueBytes: 1})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stored, refused int
	for range 100 {
		b := &storage.Batch{Data: storagetest.Batch("x")}
		result := make(chan error, 1)
		switch err := g.Append(ctx, []*storage.Batch{b}, func(err error) { result <- err }); {
		case err == nil:
			must(t, <-result)
			stored++
		case errors.Is(err, context.Canceled):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if got := len(values(t, g.Journal(), 0)); got != stored {
		t.Errorf("%d records are there, %d were acknowledged, %d given up", got, stored, refused)
	}
}
