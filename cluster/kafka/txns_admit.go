package kafka

import (
	"context"
	"errors"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// This is what the node does that leads a partition, whoever coordinates.

// admit returns a revision at which a batch's transaction was open with the partition in
// it, 0 for a batch of none.
func (c *txnCoordinator) admit(ctx context.Context, id *string, key metadata.StreamPartition, h storage.Header) (revision int64, err error) {
	if !h.Transactional() {
		return 0, nil
	}
	if id == nil {
		return 0, kerr.InvalidTxnState
	}
	t, err := c.confirm(ctx, metadata.TxnJoin{
		ID: *id, ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, Partitions: []metadata.StreamPartition{key}, Known: true,
	})
	if err != nil {
		return 0, err
	}
	return t.Revision, nil
}

// confirm returns a state of the producer's transaction in which it is open and has all
// that is asked for. What this node knows may be old: unless that is enough, or the
// coordinator is here, the log is asked.
func (c *txnCoordinator) confirm(ctx context.Context, j metadata.TxnJoin) (*metadata.Transaction, error) {
	t, err := c.check(j)
	if err == nil || errors.Is(err, metadata.ErrProducerFenced) || j.Known && c.knowsBest() {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if t, err = c.node.JoinTransaction(ctx, j); err != nil {
		return nil, err
	}
	c.hear(t)
	return t, nil
}

// knowsBest says that nobody knows more of transactions than this node.
func (c *txnCoordinator) knowsBest() bool {
	_, err := c.coordinate()
	return err == nil
}

// check judges by what this node knows. A producer that it knows to be fenced is.
func (c *txnCoordinator) check(j metadata.TxnJoin) (*metadata.Transaction, error) {
	t, ok := c.newest(j.ID)
	switch {
	case !ok || t.ProducerID != j.ProducerID:
		return nil, kerr.InvalidProducerIDMapping
	case t.Epoch > j.Epoch:
		return nil, metadata.ErrProducerFenced
	case t.Epoch < j.Epoch:
		return nil, kerr.InvalidProducerEpoch
	case !t.Covers(j.Partitions, j.Groups):
		return nil, kerr.InvalidTxnState
	}
	return t, nil
}

// newest returns the newest state of a transactional id that this node has heard of: the
// metadata's or, where that is a moment behind, what the log has answered.
func (c *txnCoordinator) newest(id string) (*metadata.Transaction, bool) {
	t, ok := c.node.Meta().Transaction(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if heard, newer := c.heard[id]; newer && (!ok || heard.Revision > t.Revision) {
		return heard, true
	}
	return t, ok
}

func (c *txnCoordinator) hear(t *metadata.Transaction) {
	if known, ok := c.newest(t.ID); ok && known.Revision >= t.Revision {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[t.ID] = t
}

// dropHeard lets go of what the metadata here has too by now.
func (c *txnCoordinator) dropHeard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.heard, func(id string, heard *metadata.Transaction) bool {
		t, ok := c.node.Meta().Transaction(id)
		return ok && t.Revision >= heard.Revision
	})
}
