package cluster

import (
	"context"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// JoinTransaction takes partitions and groups into a producer's transaction, and returns its state. The errors are
// ErrUnknownTransaction, ErrProducerFenced, ErrConflict while its last transaction is being ended, and, where j.Known asks
// only, ErrTransactionState.
func (n *Node) JoinTransaction(ctx context.Context, j metadata.TxnJoin) (*metadata.Transaction, error) {
	j.NowMillis = time.Now().UnixMilli()
	v, err := n.proposer.propose(ctx, metadata.Command{JoinTransaction: &j})
	if err != nil {
		return nil, err
	}
	return v.(*metadata.Transaction), nil
}

// PutTransaction replaces the state of a transactional id. It returns
// ErrConflict if the state is not any more the one that t was made from.
func (n *Node) PutTransaction(ctx context.Context, t metadata.Transaction) (*metadata.Transaction, error) {
	t.UpdatedMillis = time.Now().UnixMilli()
	v, err := n.proposer.propose(ctx, metadata.Command{PutTransaction: &metadata.PutTransaction{Transaction: t, From: t.Revision}})
	if err != nil {
		return nil, err
	}
	return v.(*metadata.Transaction), nil
}

// ForgetTransaction drops a transactional id. It returns ErrConflict if its state
// is not any more the one given, and ErrTransactionState if it has something
// open.
func (n *Node) ForgetTransaction(ctx context.Context, t *metadata.Transaction) error {
	_, err := n.proposer.propose(ctx, metadata.Command{ForgetTransaction: &metadata.ForgetTransaction{ID: t.ID, From: t.Revision}})
	return err
}

// PendingOffsets are offsets that take effect with a transaction.
type PendingOffsets struct {
	TransactionalID string
	ProducerID      int64
	Epoch           int16
	Group           string
	Offsets         []metadata.GroupOffset
	// Coordinator is the epoch of the coordinator that has judged them, as for CommitOffsetsAs.
	Coordinator uint64
}

// PendTxnOffsets adds offsets to an open transaction that has named the group. Under another coordinator's epoch it
// returns ErrNotCoordinator.
func (n *Node) PendTxnOffsets(ctx context.Context, p PendingOffsets) error {
	c := metadata.PendTxnOffsets(p)
	_, err := n.proposer.propose(ctx, metadata.Command{PendTxnOffsets: &c})
	return err
}
