package raftgroup

import (
	"context"
	"sync"
	"time"
)

// chore is what a group does again and again, and soon when somebody rings. It has a goroutine only while it is done, as
// most of the groups of many have nothing to do. Its zero value can be rung, and is done when it starts. It is safe for
// concurrent use.
type chore struct {
	working sync.WaitGroup

	mu     sync.Mutex // guards all below
	do     func(context.Context)
	every  time.Duration
	timer  *time.Timer
	ctx    context.Context // ends with the chore
	cancel context.CancelFunc
	rung   bool
	busy   bool
	ended  bool
}

// start has do called each time that every has passed since it returned, or somebody rang.
func (c *chore) start(every time.Duration, do func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.do, c.every = do, every
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.timer = time.AfterFunc(every, c.ring)
	c.begin()
}

// ring has it done now, or once more if it is being done.
func (c *chore) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rung = true
	c.begin()
}

// begin begins it, if there is a reason to. The caller holds mu.
func (c *chore) begin() {
	if c.do == nil || !c.rung || c.busy || c.ended {
		return
	}
	c.rung, c.busy = false, true
	c.timer.Stop()
	c.working.Go(c.work)
}

func (c *chore) work() {
	c.do(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if !c.ended {
		c.timer.Reset(c.every)
	}
	c.begin()
}

// end ends it: it is not begun any more, and its context has ended.
func (c *chore) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.do != nil {
		c.timer.Stop()
		c.cancel()
	}
}

// wait waits until it is not being done. It comes after end.
func (c *chore) wait() { c.working.Wait() }
