package cluster

import "context"

// Controller is the node that leads the metadata, -1 if none is known.
func (n *Node) Controller() int32 { return foundingNode }

// Coordinator says whether this node leads the metadata and has applied everything of earlier leaders. epoch changes
// with every election: what was kept in memory under another one is void.
func (n *Node) Coordinator() (epoch uint64, ok bool) { return n.metaGroup.Term(), true }

// CoordinatorChanged is closed when what Coordinator returns may have changed since the call.
func (n *Node) CoordinatorChanged() <-chan struct{} { return n.ctx.Done() }

// SyncMeta is a read barrier: when it returns nil, Meta has everything that was acknowledged on any node before the
// call.
func (n *Node) SyncMeta(ctx context.Context) error { return ctx.Err() }
