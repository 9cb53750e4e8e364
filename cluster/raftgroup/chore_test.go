package raftgroup

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAChoreIsDoneWhenItIsTimeAndWhenSomebodyRings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c chore
		var done, at atomic.Int64
		want := func(when string, n int64) {
			t.Helper()
			synctest.Wait()
			if got := done.Load(); got != n {
				t.Errorf("%s: done %d times, want %d", when, got, n)
			}
		}
		c.ring()
		want("before the start", 0)
		c.start(time.Minute, func(ctx context.Context) {
			if at.Add(1) > 1 {
				t.Error("it is done twice at a time")
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			at.Add(-1)
			done.Add(1)
		})
		c.ring()
		c.ring() // both while it is being done
		time.Sleep(5 * time.Second)
		want("rung before and meanwhile", 2)
		time.Sleep(time.Minute)
		want("after a minute", 3)
		time.Sleep(5 * time.Minute)
		want("after some more", 7)
		c.ring()
		time.Sleep(100 * time.Millisecond)
		c.end()
		c.wait()
		want("ended while it was being done", 8)
		c.ring()
		time.Sleep(time.Hour)
		want("after the end", 8)
	})
}
