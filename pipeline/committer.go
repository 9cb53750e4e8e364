package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxTransaction is how many bytes a transaction grows to before it is committed.
const maxTransaction = 16 << 20

// maxOpen is how long a transaction stays open.
const maxOpen = time.Second

// committer ends an emitter's transactions: when someone waits for records in it, when
// it has grown large, and at least once a second. All that wait at the same time share
// one commit.
type committer struct {
	e     *emitter
	due   chan struct{}
	bytes atomic.Int64
}

func newCommitter(e *emitter) *committer {
	return &committer{e: e, due: make(chan struct{}, 1)}
}

// want asks for a commit soon.
func (c *committer) want() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// grown notes bytes put into the transaction.
func (c *committer) grown(n int64) {
	if c.bytes.Add(n) > maxTransaction {
		c.want()
	}
}

// run commits until ctx ends or a commit fails, which ends the flight too.
func (c *committer) run(ctx context.Context) {
	tick := time.NewTicker(maxOpen)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.due:
		}
		if err := c.commit(ctx); err != nil {
			c.e.flight.stop(err)
			return
		}
	}
}

// commit commits what has been emitted and begins the next transaction. Nothing is
// emitted meanwhile.
func (c *committer) commit(ctx context.Context) error {
	if err := c.e.take(ctx); err != nil {
		return err
	}
	defer c.e.pass()
	if c.e.flight.idle() {
		return nil
	}
	upTo := c.e.flight.opened()
	if err := c.e.client.Flush(ctx); err != nil {
		return fmt.Errorf("flushing a transaction: %w", err)
	}
	// Records that failed have stopped the flight; the commit would fail too, but must
	// not be tried.
	if err := c.e.flight.wait(ctx, func() bool { return true }); err != nil {
		return err
	}
	if err := c.e.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("committing a transaction: %w", err)
	}
	c.bytes.Store(0)
	c.e.flight.commit(upTo)
	if err := c.e.client.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	return nil
}
