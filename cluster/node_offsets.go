package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// CommitOffsets stores a group's offsets and returns once they are durable.
// Commits that come together share one write.
func (n *Node) CommitOffsets(ctx context.Context, group string, offsets []metadata.GroupOffset) error {
	_, err := n.proposer.propose(ctx, metadata.Command{CommitOffsets: &metadata.CommitOffsets{Group: group, Offsets: offsets}})
	return err
}

// CommitOffsetsAs is CommitOffsets of a coordinator: it takes effect only if no
// other one was elected since this one got its epoch, and is ErrNotCoordinator
// otherwise.
func (n *Node) CommitOffsetsAs(ctx context.Context, epoch uint64, group string, offsets []metadata.GroupOffset) error {
	if now, ok := n.Coordinator(); !ok || now != epoch {
		return metadata.ErrNotCoordinator
	}
	_, err := n.proposer.propose(ctx, metadata.Command{CommitOffsets: &metadata.CommitOffsets{Group: group, Offsets: offsets, Term: epoch}})
	return err
}

// DeleteOffsets forgets a group's offsets for the given partitions. epoch is the coordinator's, as for CommitOffsetsAs.
func (n *Node) DeleteOffsets(ctx context.Context, epoch uint64, group string, partitions []metadata.StreamPartition) error {
	c := &metadata.DeleteOffsets{Group: group, Term: epoch}
	for _, p := range partitions {
		c.Partitions = append(c.Partitions, metadata.GroupOffset{Stream: p.Stream, Partition: p.Partition, Tag: p.Tag})
	}
	_, err := n.proposer.propose(ctx, metadata.Command{DeleteOffsets: c})
	return err
}

// DeleteGroup forgets a group with all its offsets, and with that its hold on
// retention. It returns ErrUnknownGroup if there are none. epoch is the coordinator's, as for CommitOffsetsAs.
func (n *Node) DeleteGroup(ctx context.Context, epoch uint64, group string) error {
	_, err := n.proposer.propose(ctx, metadata.Command{DeleteGroup: &metadata.DeleteGroup{Group: group, Term: epoch}})
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

// producerIDs hands out ids of a block that the metadata has reserved: an id
// costs a write only once in a block. Ids of a block that a stop cuts short are
// never used.
type producerIDs struct {
	mu        sync.Mutex
	next, end int64
}

const producerIDBlock = 1000

// NextProducerID returns an id that no producer has had.
func (n *Node) NextProducerID(ctx context.Context) (int64, error) {
	if id, ok := n.producerIDs.take(); ok {
		return id, nil
	}
	v, err := n.proposer.propose(ctx, metadata.Command{ReserveProducerIDs: &metadata.ReserveProducerIDs{Count: producerIDBlock}})
	if err != nil {
		return -1, err
	}
	return n.producerIDs.refill(v.(int64)), nil
}

func (p *producerIDs) take() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == p.end {
		return 0, false
	}
	p.next++
	return p.next - 1, true
}

// refill takes over a fresh block and returns its first id. If two callers have
// each reserved one, the rest of the first is dropped.
func (p *producerIDs) refill(first int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.end = first+1, first+producerIDBlock
	return first
}

// KeepGroup keeps who belongs to a group, for the next coordinator, and returns when that is durable. It takes effect only
// if no other one was elected since this one got its epoch, and is ErrNotCoordinator otherwise.
func (n *Node) KeepGroup(ctx context.Context, epoch uint64, group string, state []byte) error {
	if now, ok := n.Coordinator(); !ok || now != epoch {
		return metadata.ErrNotCoordinator
	}
	_, err := n.proposer.propose(ctx, metadata.Command{KeepGroup: &metadata.KeepGroup{Group: group, State: state, Term: epoch}})
	return err
}
