package cluster

import (
	"context"

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

// KeepGroup keeps who belongs to a group, for the next coordinator, and returns when that is durable. It takes effect only
// if no other one was elected since this one got its epoch, and is ErrNotCoordinator otherwise.
func (n *Node) KeepGroup(ctx context.Context, epoch uint64, group string, state []byte) error {
	if now, ok := n.Coordinator(); !ok || now != epoch {
		return metadata.ErrNotCoordinator
	}
	_, err := n.proposer.propose(ctx, metadata.Command{KeepGroup: &metadata.KeepGroup{Group: group, State: state, Term: epoch}})
	return err
}
