package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
)

// coordinating is whether this node leads the metadata and has everything of earlier leaders.
type coordinating struct {
	mu      sync.Mutex
	epoch   uint64        // under which it does; 0: it does not. Guarded by mu
	changed chan struct{} // closed at the next change; guarded by mu
}

func (c *coordinating) set(epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		c.epoch = epoch
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

func (c *coordinating) get() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch, c.changed
}

// Controller is the node that leads the metadata, -1 if none is known.
func (n *Node) Controller() int32 {
	if n.trans == nil {
		return n.id
	}
	return metadata.NodeAt(n.metaGroup.LeaderAddress())
}

// Coordinator says whether this node leads the metadata and has applied everything of earlier leaders. epoch changes
// with every election: what was kept in memory under another one is void.
func (n *Node) Coordinator() (epoch uint64, ok bool) {
	if n.trans == nil {
		return n.metaGroup.Term(), true
	}
	epoch, _ = n.coordinating.get()
	leads := n.metaGroup.Leads() && n.metaGroup.Term() == epoch
	return epoch, epoch != 0 && leads
}

// CoordinatorChanged is closed when what Coordinator returns may have changed since the call.
func (n *Node) CoordinatorChanged() <-chan struct{} {
	_, changed := n.coordinating.get()
	return changed
}

// coordinate follows the elections of the metadata group until the node closes.
func (n *Node) coordinate() {
	defer n.coordinating.set(0)
	for {
		g := n.metaGroup
		term := g.Term()
		switch {
		case !g.Leads():
			n.coordinating.set(0)
		case n.passBarrier(g) == nil && g.Leads() && g.Term() == term:
			n.coordinating.set(term)
		default: // it has lost the lead, or not all is applied yet
			n.coordinating.set(0)
			if !retry.Pause(n.ctx, retryPause) {
				return
			}
			continue
		}
		for again := true; again; { // until something has changed
			select {
			case <-g.LeadChanged():
				again = false
			case <-time.After(time.Second): // a change that LeaderCh joined with one before
				epoch, _ := n.coordinating.get()
				leads := g.Leads()
				again = leads == (epoch != 0) && (!leads || g.Term() == epoch)
			case <-n.metaGroup.Done():
				return
			case <-n.ctx.Done():
				return
			}
		}
	}
}

// passBarrier waits a second for all that earlier leaders have left to be applied here.
func (n *Node) passBarrier(g *raftgroup.Machine) error {
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	return g.Barrier(ctx)
}

// SyncMeta is a read barrier: when it returns nil, Meta has everything that was acknowledged on any node before the
// call.
func (n *Node) SyncMeta(ctx context.Context) error {
	if n.trans == nil {
		return ctx.Err()
	}
	for {
		index, err := n.syncIndex(ctx)
		if err == nil {
			return n.waitApplied(ctx, index)
		}
		if ended := n.metaEnded(); ended != nil {
			return ended
		}
		if !retry.Pause(ctx, retryPause) {
			return err
		}
		if n.ctx.Err() != nil {
			return ErrClosed
		}
		if n.removal.told() {
			return n.removal.err
		}
	}
}

// syncIndex asks the leader up to which entry everything that was acknowledged is.
func (n *Node) syncIndex(ctx context.Context) (index uint64, err error) {
	switch leader := n.Controller(); leader {
	case n.id:
		return n.answerSync(ctx)
	case -1:
		return 0, ErrNotLeader
	default:
		ctx, cancel := context.WithTimeout(ctx, forwardPatience)
		defer cancel()
		err = n.callNode(ctx, leader, callSync, nil, &index)
		return index, err
	}
}

// answerSync returns the last entry that is applied here, after making sure that nobody else can have acknowledged more:
// this node has led since it was read.
func (n *Node) answerSync(context.Context) (uint64, error) {
	epoch, ok := n.Coordinator()
	if !ok {
		return 0, ErrNotLeader
	}
	index := n.meta.Applied()
	if err := n.metaGroup.Verify(); err != nil {
		return 0, err
	}
	if now, ok := n.Coordinator(); !ok || now != epoch {
		return 0, ErrNotLeader
	}
	return index, nil
}
