package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
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

	// tendedAtOnce and markersAtOnce bound the transactions that are looked at, and the
	// markers of one that are written, at the same time.
	tendedAtOnce  = 16
	markersAtOnce = 256
	// markerRetry is how long a marker waits for its partition to get a leader before it
	// is tried again.
	markerRetry = 20 * time.Millisecond
)

// txnCoordinator drives transactions. What it has decided stands in the metadata, under
// a revision that rises with every change of a transactional id; it only writes the
// markers that follow from it. So its memory matters to nobody: the coordinator of the
// next epoch goes on from the metadata, and one that does not know that it was deposed
// can only lose, as a change names the revision that it was made from.
//
// # No batch behind its marker
//
// Any node may lead a partition, and its metadata may be a moment behind. A batch is
// taken in if some revision is known at which its transaction was open with the
// partition in it (admit). That the transaction is open still need not be known: it was
// at that revision, so a marker with a higher one will be written to the partition, or
// has been. The journal decides which, where the order is made: a batch is refused
// behind a marker of a higher revision than its own, on whichever node and after however
// many leaders. A marker that comes late, of a coordinator that was deposed or out of
// the network, has a revision that the journal knows, and changes nothing. So nothing is
// left open, and nothing is ended twice (storage, producer.check).
//
// That a batch of one transaction does not land in the same producer's next one is what
// version 2 of transactions is for: the epoch rises with each end (txns_bump.go). With
// clients of version 1 it can, as in Kafka.
type txnCoordinator struct {
	node       *cluster.Node
	logger     *slog.Logger
	coordinate func() (epoch uint64, err error)

	mu    sync.Mutex
	locks map[string]*sync.Mutex
	heard map[string]*metadata.Transaction // states that the metadata here does not have yet
}

func newTxnCoordinator(s *Server) *txnCoordinator {
	return &txnCoordinator{
		node: s.node, logger: s.logger, coordinate: s.coordinate,
		locks: map[string]*sync.Mutex{}, heard: map[string]*metadata.Transaction{},
	}
}

// lockOf returns the lock under which this node changes a transactional id: its own
// requests would otherwise run into each other's revisions.
func (c *txnCoordinator) lockOf(id string) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.locks[id]
	if !ok {
		l = &sync.Mutex{}
		c.locks[id] = l
	}
	return l
}

// run finishes what was decided before this node coordinated, and aborts transactions
// whose producers have let them run out, until ctx ends.
func (c *txnCoordinator) run(ctx context.Context) {
	open := openings{}
	for {
		c.dropHeard()
		if _, err := c.coordinate(); err == nil {
			all := c.node.Meta().Transactions()
			open.note(all)
			c.tendAll(ctx, all, open)
		} else {
			clear(open)
		}
		if !retry.Pause(ctx, txnScan) {
			return
		}
	}
}

// tendAll looks at all transactions, several at a time: one whose partition has no
// leader must not keep the others waiting.
func (c *txnCoordinator) tendAll(ctx context.Context, all []*metadata.Transaction, open openings) {
	var tending errgroup.Group
	tending.SetLimit(tendedAtOnce)
	for _, t := range all {
		if !t.Decided() && !open.overdue(t) && !unused(t) {
			continue
		}
		tending.Go(func() error {
			if err := c.tend(ctx, t); err != nil && ctx.Err() == nil {
				c.logger.Warn("cannot end a transaction, trying again", "transactional_id", t.ID, "error", err)
			}
			return nil
		})
	}
	_ = tending.Wait() // none returns an error
}

// tend ends a transaction that is decided or overdue, and forgets an id that is
// not used any more.
func (c *txnCoordinator) tend(ctx context.Context, seen *metadata.Transaction) error {
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

func unused(t *metadata.Transaction) bool {
	return t.State != metadata.TxnOngoing && !t.Decided() && time.Since(time.UnixMilli(t.UpdatedMillis)) > txnForget
}

// fence aborts an open transaction under a higher epoch, so that its producer
// can add nothing more. last is the epoch from which its client may still come for
// the new one, or -1.
func (c *txnCoordinator) fence(ctx context.Context, t *metadata.Transaction, last int16) error {
	next := *t
	next.Epoch, next.LastEpoch = t.Epoch+1, last
	next.State = metadata.TxnPrepareAbort
	prepared, err := c.node.PutTransaction(ctx, next)
	if err != nil {
		return err
	}
	return c.complete(ctx, prepared)
}

// complete writes the markers of a decided transaction, all at once, and then
// that they are written. Until then its state says that they are due.
func (c *txnCoordinator) complete(ctx context.Context, t *metadata.Transaction) error {
	var markers errgroup.Group
	markers.SetLimit(markersAtOnce)
	for _, key := range t.Partitions {
		markers.Go(func() error { return c.mark(ctx, t, key) })
	}
	if err := markers.Wait(); err != nil {
		return fmt.Errorf("writing transaction markers: %w", err)
	}
	next := *t
	next.State = metadata.TxnCompleteAbort
	if t.State == metadata.TxnPrepareCommit {
		next.State = metadata.TxnCompleteCommit
	}
	_, err := c.node.PutTransaction(ctx, next)
	return err
}

// mark writes the marker of a decided transaction in one partition, wherever its leader
// is, and looks for it while there is none.
func (c *txnCoordinator) mark(ctx context.Context, t *metadata.Transaction, key metadata.StreamPartition) error {
	for {
		if _, ok := c.node.Meta().StreamByID(key.Stream); !ok {
			return nil // deleted: nothing is open there
		}
		err := c.node.WriteMarker(ctx, key, t.ProducerID, t.Epoch, t.State == metadata.TxnPrepareCommit, uint64(t.Revision))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, cluster.ErrUnknownOutcome), errors.Is(err, metadata.ErrUnknownStream):
			if !retry.Pause(ctx, markerRetry) {
				return err
			}
		default:
			return err
		}
	}
}

// owned locks a transactional id and returns its state if the producer is its
// current one. Decided transactions are finished first.
func (c *txnCoordinator) owned(ctx context.Context, id string, producerID int64, epoch int16) (t *metadata.Transaction, unlock func(), err error) {
	return c.locked(ctx, id, func(t *metadata.Transaction) error {
		switch {
		case t.ProducerID != producerID:
			return kerr.InvalidProducerIDMapping
		case t.Epoch != epoch:
			return metadata.ErrProducerFenced
		}
		return nil
	})
}

// locked locks a transactional id and returns its state if judge has nothing against it.
// Decided transactions are finished first.
func (c *txnCoordinator) locked(ctx context.Context, id string, judge func(*metadata.Transaction) error) (t *metadata.Transaction, unlock func(), err error) {
	if _, err := c.coordinate(); err != nil {
		return nil, nil, err
	}
	// Only ids that exist get a lock, so that nonsense costs no memory.
	if _, known := c.node.Meta().Transaction(id); !known {
		return nil, nil, kerr.InvalidProducerIDMapping
	}
	l := c.lockOf(id)
	l.Lock()
	t, ok := c.node.Meta().Transaction(id)
	if !ok {
		l.Unlock()
		return nil, nil, kerr.InvalidProducerIDMapping
	}
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

// add puts partitions and groups into a transaction, and begins it if need be.
func (c *txnCoordinator) add(ctx context.Context, j metadata.TxnJoin) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	t, unlock, err := c.owned(ctx, j.ID, j.ProducerID, j.Epoch)
	if err != nil {
		return err
	}
	defer unlock()
	if t.Covers(j.Partitions, j.Groups) {
		return nil // nothing new
	}
	_, err = c.node.JoinTransaction(ctx, j)
	return err
}

// end commits or aborts, and returns once that is visible to readers.
func (c *txnCoordinator) end(ctx context.Context, id string, producerID int64, epoch int16, commit bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	t, unlock, err := c.owned(ctx, id, producerID, epoch)
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case commit && t.State == metadata.TxnCompleteCommit, !commit && t.State == metadata.TxnCompleteAbort:
		return nil // asked again
	case t.State != metadata.TxnOngoing:
		return kerr.InvalidTxnState
	}
	next := *t
	next.State = metadata.TxnPrepareAbort
	if commit {
		next.State = metadata.TxnPrepareCommit
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
