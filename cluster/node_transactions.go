package cluster

import (
	"context"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
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

// AppendTxn is Append of a batch of a transaction, which had the partition in it when it was at revision. If the
// transaction's marker is there before the batch, the batch is refused with storage.ErrTxnState: so none is ever left
// behind, open for good, whoever leads the partition and however late the batch comes.
func (p *Partition) AppendTxn(ctx context.Context, batch []byte, revision int64, done func(Appended)) error {
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: batch, Began: int32(revision)}, done)
}
