package cluster

import "context"

// Leader returns the node that leads the partition, -1 if none is known, and its epoch, which never goes back.
func (p *Partition) Leader() (node, epoch int32) { return p.handle.node.id, p.LeaderEpoch() }

// Replicas returns the nodes that have the partition, the one that should lead it first.
func (p *Partition) Replicas() []int32 { return []int32{p.handle.node.id} }

// InSync returns the replicas that have what the leader has, or nearly so. Where this node does not lead it is what the
// leader said last.
func (p *Partition) InSync() []int32 { return []int32{p.handle.node.id} }

// WriteMarker ends a producer's transaction in a partition, wherever its leader is, and returns when the marker is
// stored. It may be repeated. coordinatorEpoch is the epoch under which the transaction was decided. The errors
// are those of Append; ErrNotLeader if no leader could be reached.
func (n *Node) WriteMarker(ctx context.Context, key StreamPartition, producerID int64, epoch int16, commit bool, coordinatorEpoch uint64) error {
	p, err := n.PartitionByKey(key)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	if err := p.appendMarker(ctx, producerID, epoch, commit, coordinatorEpoch, func(a Appended) { result <- a.Err }); err != nil {
		return err
	}
	return <-result
}
