package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/storage"
)

const (
	maxTxnTimeout = 15 * time.Minute
	// txnScan is how often overdue and unfinished transactions are looked for.
	txnScan = 500 * time.Millisecond
	// txnForget is how long a transactional id is kept that nobody uses: Kafka's 7
	// days. A producer that comes back later starts anew.
	txnForget = 7 * 24 * time.Hour
	// lastEpoch is the highest epoch a client may get; the one above it is for
	// fencing the client that has it.
	lastEpoch = 1<<15 - 2
)

// txnCoordinator drives transactions. What it has decided stands in the
// metadata; it only writes the markers that follow from it, now or after the
// next start.
//
// A transactional id has a lock: exclusive for whoever changes it, shared for a
// produce request between its check and its place in the journal's queue. So no
// batch of a transaction can land behind the transaction's marker.
type txnCoordinator struct {
	node   *cluster.Node
	logger *slog.Logger

	mu    sync.Mutex
	locks map[string]*sync.RWMutex
}

func newTxnCoordinator(node *cluster.Node, logger *slog.Logger) *txnCoordinator {
	return &txnCoordinator{node: node, logger: logger, locks: map[string]*sync.RWMutex{}}
}

func (c *txnCoordinator) lockOf(id string) *sync.RWMutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.locks[id]
	if !ok {
		l = &sync.RWMutex{}
		c.locks[id] = l
	}
	return l
}

// run finishes what a former run has decided, and aborts transactions whose
// producers have let them run out, until ctx ends.
func (c *txnCoordinator) run(ctx context.Context) {
	for {
		for _, t := range c.node.Meta().Transactions() {
			if err := c.tend(ctx, t); err != nil && ctx.Err() == nil {
				c.logger.Warn("cannot end a transaction, trying again", "transactional_id", t.ID, "error", err)
			}
		}
		if !pause(ctx, txnScan) {
			return
		}
	}
}

// tend ends a transaction that is decided or overdue, and forgets an id that is
// not used any more.
func (c *txnCoordinator) tend(ctx context.Context, seen *cluster.Transaction) error {
	if !seen.Decided() && !overdue(seen) && !unused(seen) {
		return nil
	}
	l := c.lockOf(seen.ID)
	l.Lock()
	defer l.Unlock()
	t, ok := c.node.Meta().Transaction(seen.ID)
	if !ok || t.Revision != seen.Revision {
		return nil // somebody was faster
	}
	switch {
	case t.Decided():
		return c.complete(ctx, t)
	case unused(t):
		return c.node.ForgetTransaction(ctx, t)
	}
	return c.fence(ctx, t, -1)
}

func unused(t *cluster.Transaction) bool {
	return t.State != cluster.TxnOngoing && !t.Decided() && time.Since(time.UnixMilli(t.UpdatedMillis)) > txnForget
}

func overdue(t *cluster.Transaction) bool {
	started := time.UnixMilli(t.StartedMillis)
	return t.State == cluster.TxnOngoing && time.Since(started) > time.Duration(t.TimeoutMillis)*time.Millisecond
}

// fence aborts an open transaction under a higher epoch, so that its producer
// can add nothing more. last is the epoch from which its client may still come for
// the new one, or -1.
func (c *txnCoordinator) fence(ctx context.Context, t *cluster.Transaction, last int16) error {
	next := *t
	next.Epoch, next.LastEpoch = t.Epoch+1, last
	next.State = cluster.TxnPrepareAbort
	prepared, err := c.node.PutTransaction(ctx, next)
	if err != nil {
		return err
	}
	return c.complete(ctx, prepared)
}

// complete writes the markers of a decided transaction, all at once, and then
// that they are written. Until then its state says that they are due.
func (c *txnCoordinator) complete(ctx context.Context, t *cluster.Transaction) error {
	commit := t.State == cluster.TxnPrepareCommit
	results := make(chan error, len(t.Partitions))
	for _, key := range t.Partitions {
		p, err := c.node.PartitionByKey(key)
		if err != nil {
			results <- nil // deleted with its stream: nothing is open there
			continue
		}
		err = p.AppendMarker(ctx, t.ProducerID, t.Epoch, commit, func(a cluster.Appended) { results <- a.Err })
		if err != nil {
			results <- err
		}
	}
	var failed error
	for range t.Partitions {
		select {
		case err := <-results:
			if err != nil {
				failed = fmt.Errorf("writing transaction markers: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failed != nil {
		return failed
	}
	next := *t
	next.State = cluster.TxnCompleteAbort
	if commit {
		next.State = cluster.TxnCompleteCommit
	}
	_, err := c.node.PutTransaction(ctx, next)
	return err
}

// admit checks a batch against its transaction. Unlock once the batch is queued.
func (c *txnCoordinator) admit(id *string, key cluster.StreamPartition, h storage.Header) (unlock func(), err error) {
	if !h.Transactional() {
		return func() {}, nil
	}
	if id == nil {
		return nil, kerr.InvalidTxnState
	}
	// Only ids that exist get a lock, so that nonsense costs no memory.
	if _, known := c.node.Meta().Transaction(*id); !known {
		return nil, kerr.InvalidProducerIDMapping
	}
	l := c.lockOf(*id)
	l.RLock()
	if err := c.check(*id, key, h); err != nil {
		l.RUnlock()
		return nil, err
	}
	return l.RUnlock, nil
}

func (c *txnCoordinator) check(id string, key cluster.StreamPartition, h storage.Header) error {
	t, ok := c.node.Meta().Transaction(id)
	switch {
	case !ok || t.ProducerID != h.ProducerID:
		return kerr.InvalidProducerIDMapping
	case t.Epoch != h.ProducerEpoch:
		return kerr.InvalidProducerEpoch
	case t.State != cluster.TxnOngoing || !t.Has(key):
		return kerr.InvalidTxnState
	}
	return nil
}

// owned locks a transactional id and returns its state if the producer is its
// current one. Decided transactions are finished first.
func (c *txnCoordinator) owned(ctx context.Context, id string, producerID int64, epoch int16) (t *cluster.Transaction, unlock func(), err error) {
	return c.locked(ctx, id, func(t *cluster.Transaction) error {
		switch {
		case t.ProducerID != producerID:
			return kerr.InvalidProducerIDMapping
		case t.Epoch != epoch:
			return cluster.ErrProducerFenced
		}
		return nil
	})
}

// locked locks a transactional id and returns its state if judge has nothing against it.
// Decided transactions are finished first.
func (c *txnCoordinator) locked(ctx context.Context, id string, judge func(*cluster.Transaction) error) (t *cluster.Transaction, unlock func(), err error) {
	if _, known := c.node.Meta().Transaction(id); !known {
		return nil, nil, kerr.InvalidProducerIDMapping
	}
	l := c.lockOf(id)
	l.Lock()
	t, _ = c.node.Meta().Transaction(id)
	if err = judge(t); err == nil && t.Decided() {
		if c.complete(ctx, t) != nil {
			err = kerr.ConcurrentTransactions
		}
		t, _ = c.node.Meta().Transaction(id)
	}
	if err != nil {
		l.Unlock()
		return nil, nil, err
	}
	return t, l.Unlock, nil
}

// add puts partitions and a group into a transaction, and begins it if need be.
func (c *txnCoordinator) add(ctx context.Context, id string, producerID int64, epoch int16, partitions []cluster.StreamPartition, groups []string) error {
	t, unlock, err := c.owned(ctx, id, producerID, epoch)
	if err != nil {
		return err
	}
	defer unlock()
	next := *t
	next.Partitions, next.Groups = slices.Clone(t.Partitions), slices.Clone(t.Groups)
	if t.State != cluster.TxnOngoing {
		next.State, next.StartedMillis = cluster.TxnOngoing, time.Now().UnixMilli()
	}
	for _, p := range partitions {
		if !next.Has(p) {
			next.Partitions = append(next.Partitions, p)
		}
	}
	for _, g := range groups {
		if !slices.Contains(next.Groups, g) {
			next.Groups = append(next.Groups, g)
		}
	}
	if t.State == next.State && len(t.Partitions) == len(next.Partitions) && len(t.Groups) == len(next.Groups) {
		return nil // nothing new
	}
	_, err = c.node.PutTransaction(ctx, next)
	return err
}

// end commits or aborts, and returns once that is visible to readers.
func (c *txnCoordinator) end(ctx context.Context, id string, producerID int64, epoch int16, commit bool) error {
	t, unlock, err := c.owned(ctx, id, producerID, epoch)
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case commit && t.State == cluster.TxnCompleteCommit, !commit && t.State == cluster.TxnCompleteAbort:
		return nil // asked again
	case t.State != cluster.TxnOngoing:
		return kerr.InvalidTxnState
	}
	next := *t
	next.State = cluster.TxnPrepareAbort
	if commit {
		next.State = cluster.TxnPrepareCommit
	}
	prepared, err := c.node.PutTransaction(ctx, next)
	if err != nil {
		return err
	}
	// The decision is made: if the markers fail now, run writes them later.
	if err := c.complete(ctx, prepared); err != nil {
		return fmt.Errorf("%w: %w", kerr.ConcurrentTransactions, err)
	}
	return nil
}
