package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Appended is the result of an append.
type Appended struct {
	// BaseOffset is the offset of the batch's first record; of a batch that had
	// been stored before it is the one it got then.
	BaseOffset int64
	// LogStart is the first offset that can be read.
	LogStart int64
	// Err is why the batch was not stored.
	Err error
}

// Append checks a record batch, puts it behind those that were put before it, and
// returns without waiting for the disk; it waits only for room in the journal's
// queue. done is called once, from another goroutine, when the batch is stored as
// the stream's durability promises, or refused. The batch's bytes belong to the
// journal until then. If Append returns an error done is never called.
func (p *Partition) Append(ctx context.Context, batch []byte, done func(Appended)) error {
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: batch}, done)
}

// Txn is what is known of the transaction of a batch.
type Txn struct {
	// Revision is that of the transaction when it had the partition in it.
	Revision int64
	// FromZero: see [storage.Batch].
	FromZero bool
}

// AppendTxn is Append of a batch of a transaction. If the transaction's marker is there before the batch, the batch is
// refused with storage.ErrTxnState: so none is ever left behind, open for good, whoever leads the partition and however
// late the batch comes.
func (p *Partition) AppendTxn(ctx context.Context, batch []byte, txn Txn, done func(Appended)) error {
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: batch, Began: int32(txn.Revision), FromZero: txn.FromZero}, done)
}

// AppendMarker ends a producer's transaction in this partition, which this node has to lead. [Node.WriteMarker] does it
// wherever the leader is.
func (p *Partition) AppendMarker(ctx context.Context, producerID int64, epoch int16, commit bool, done func(Appended)) error {
	return p.appendMarker(ctx, producerID, epoch, commit, 0, done)
}

func (p *Partition) appendMarker(ctx context.Context, producerID int64, epoch int16, commit bool, coordinatorEpoch uint64, done func(Appended)) error {
	marker := storage.ControlBatch(producerID, epoch, int32(coordinatorEpoch), commit, time.Now().UnixMilli())
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: marker, Marker: true}, done)
}

func (p *Partition) append(ctx context.Context, b *storage.Batch, done func(Appended)) error {
	if p.tag != "" {
		return metadata.ErrTagged
	}
	g, err := p.handle.open()
	if err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	err = g.AppendOne(ctx, b, func(err error) {
		if err == nil {
			err = b.Err
		}
		a := Appended{BaseOffset: b.Offset, Err: readOnly(g, err)}
		a.LogStart, _ = g.Journal().Bounds(b.Partition)
		done(a)
	})
	return readOnly(g, err)
}

// readOnly marks an error of a group that has ended by itself.
func readOnly(g *raftgroup.Group, err error) error {
	if err == nil {
		return nil
	}
	if cause := g.Err(); cause != nil {
		return fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	if cause := g.Journal().Err(); cause != nil && !errors.Is(cause, storage.ErrClosed) {
		return fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	return err
}
