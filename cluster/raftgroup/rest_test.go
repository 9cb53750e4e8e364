package raftgroup

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// openResting opens a group of one that is not looked after by itself.
func openResting(t *testing.T) *Group {
	t.Helper()
	g, err := Open(Options{Dir: t.TempDir(), CareEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// A group to which nothing is appended has no goroutines for it.
func TestAQueueThatIsNotUsedRests(t *testing.T) {
	t.Parallel()
	g := openResting(t)
	moving := func() bool {
		g.queue.mu.Lock()
		defer g.queue.mu.Unlock()
		return g.queue.moving
	}
	if moving() {
		t.Error("it moves before anything was appended")
	}
	for round := range int64(3) {
		b := &storage.Batch{Data: storagetest.Batch("")}
		if err := g.AppendWait(t.Context(), []*storage.Batch{b}); err != nil || b.Err != nil || b.Offset != round {
			t.Fatalf("append %d: %v, %v, at %d", round, err, b.Err, b.Offset)
		}
		g.queue.rest()
		if !moving() {
			t.Error("it rests though it was used since it was looked last")
		}
		for deadline := time.Now().Add(30 * time.Second); moving(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it never rests")
			}
			g.queue.rest()
		}
	}
}

// Whoever appends while a queue goes to rest gets its answer, in the order of the appends.
func TestAppendsAreAnsweredInOrderWhileTheQueueRests(t *testing.T) {
	t.Parallel()
	g := openResting(t)
	stop := make(chan struct{})
	var resting, all sync.WaitGroup
	resting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				g.queue.rest()
			}
		}
	})
	for p := range uint32(4) {
		all.Go(func() {
			var mu sync.Mutex
			var got []int
			var answered sync.WaitGroup
			for i := range 200 {
				answered.Add(1)
				err := g.Append(context.Background(), []*storage.Batch{{Partition: p, Data: storagetest.Batch("")}}, func(err error) {
					defer answered.Done()
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					got = append(got, i)
				})
				if err != nil {
					t.Error(err)
					answered.Done()
				}
				if i%3 == 0 {
					answered.Wait() // so that there are moments without any
				}
			}
			answered.Wait()
			for i, n := range got {
				if i != n {
					t.Errorf("partition %d: answer %d is that of append %d", p, i, n)
					return
				}
			}
			if _, end := g.journal.Bounds(p); end != 200 {
				t.Errorf("partition %d ends at %d", p, end)
			}
		})
	}
	all.Wait()
	close(stop)
	resting.Wait()
}
