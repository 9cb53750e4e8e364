package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// This is version 2 of transactions (KIP-890): every end raises the producer's
// epoch, so that nothing which the network held back can reach the producer's
// next transaction, and partitions join with their first batch.

// endAndBump commits or aborts under the next epoch, and returns the producer's
// state once that is visible to readers. A request that comes again, because its
// answer was lost, gets the same answer.
func (c *txnCoordinator) endAndBump(ctx context.Context, id string, producerID int64, epoch int16, commit bool) (*metadata.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	t, unlock, err := c.ended(ctx, id, producerID, epoch)
	if err != nil {
		return nil, err
	}
	defer unlock()
	again := t.ProducerID != producerID || t.Epoch != epoch
	switch {
	case again && commit && t.State == metadata.TxnCompleteCommit, again && !commit && t.State == metadata.TxnCompleteAbort:
		return c.rotate(ctx, t)
	case again && (t.State == metadata.TxnOngoing || t.State == metadata.TxnEmpty):
		return nil, metadata.ErrProducerFenced // that epoch is the next transaction's, or was given to a producer that begins
	case again, commit && t.State != metadata.TxnOngoing:
		return nil, kerr.InvalidTxnState
	}
	// To abort what has not begun is allowed: the client does not know whether its
	// first batch has arrived.
	next := *t
	next.Epoch, next.LastEpoch, next.State = epoch+1, epoch, metadata.TxnPrepareAbort
	if commit {
		next.State = metadata.TxnPrepareCommit
	}
	prepared, err := c.node.PutTransaction(ctx, next)
	if err != nil {
		return nil, err
	}
	if err := c.complete(ctx, prepared); err != nil { // run writes the markers later
		return nil, fmt.Errorf("%w: %w", kerr.ConcurrentTransactions, err)
	}
	t, _ = c.node.Meta().Transaction(id)
	return c.rotate(ctx, t)
}

// ended locks a transactional id and returns its state if the producer is its
// current one, or was until its last transaction ended. Decided transactions are
// finished first.
func (c *txnCoordinator) ended(ctx context.Context, id string, producerID int64, epoch int16) (t *metadata.Transaction, unlock func(), err error) {
	return c.locked(ctx, id, func(t *metadata.Transaction) error {
		rotated := producerID == t.PreviousID && epoch == lastEpoch && t.Epoch == 0
		switch {
		case t.ProducerID != producerID && !rotated:
			return kerr.InvalidProducerIDMapping
		case t.Epoch != epoch && !rotated && (t.Epoch != epoch+1 || t.LastEpoch != epoch):
			return metadata.ErrProducerFenced
		}
		return nil
	})
}

// rotate gives a producer whose epochs are used up the next producer id.
func (c *txnCoordinator) rotate(ctx context.Context, t *metadata.Transaction) (*metadata.Transaction, error) {
	if t.Epoch <= lastEpoch {
		return t, nil
	}
	producerID, err := c.node.NextProducerID(ctx)
	if err != nil {
		return nil, err
	}
	next := *t
	next.PreviousID, next.ProducerID, next.Epoch, next.LastEpoch = t.ProducerID, producerID, 0, -1
	return c.node.PutTransaction(ctx, next)
}

// countsAnew says whether clients that send this version of Produce use version 2 of transactions: they do not add a partition
// before they write to it, and number batches from 0 in each transaction.
func countsAnew(version int16) bool { return version >= 12 }

// joinTxn takes the partitions of a transactional produce request into their
// transaction, where clients do not ask for that.
func (s *Server) joinTxn(c *call, r *produceRequest) error {
	if !countsAnew(c.version) || r.transactionalID == nil || r.denied != nil {
		return nil
	}
	var first storage.Header
	var partitions []metadata.StreamPartition
	for _, t := range r.topics {
		stream, ok := s.node.Meta().Stream(t.name)
		if !ok || t.denied != nil {
			continue // its batches are refused
		}
		for _, p := range t.partitions {
			h, err := storage.ParseHeader(p.records)
			if err != nil || !h.Transactional() || p.index < 0 || p.index >= stream.Partitions {
				continue
			}
			if len(partitions) == 0 {
				first = h
			}
			// Batches of one request have one producer; others are refused by admit.
			key := metadata.StreamPartition{Stream: stream.ID, Partition: p.index}
			if h.ProducerID == first.ProducerID && h.ProducerEpoch == first.ProducerEpoch && !slices.Contains(partitions, key) {
				partitions = append(partitions, key)
			}
		}
	}
	if len(partitions) == 0 {
		return nil
	}
	_, err := s.txns.confirm(s.ctx, metadata.TxnJoin{
		ID: *r.transactionalID, ProducerID: first.ProducerID, Epoch: first.ProducerEpoch, Partitions: partitions,
	})
	return err
}
