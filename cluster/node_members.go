package cluster

import (
	"context"
	"maps"
	"sync"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// announced are the addresses for Kafka clients of a node alone, which has no place in the metadata.
type announced struct {
	sync.Mutex
	listeners map[string]string // guarded by the mutex
}

// ID is this node's id in its cluster: above 0, and never another one's.
func (n *Node) ID() int32 { return n.id }

// Members returns the nodes of the cluster by their ids, this one among them.
func (n *Node) Members() []metadata.Member {
	if n.trans != nil {
		if all := n.meta.Members(); len(all) > 0 {
			return all
		}
	}
	n.announced.Lock()
	defer n.announced.Unlock()
	m := metadata.Member{ID: n.id, Listeners: maps.Clone(n.announced.listeners)}
	if n.Observes() {
		m.Rack = n.opts.Observe.Rack
	}
	return []metadata.Member{m}
}

// Up says whether a node was heard of lately; this one always was.
func (n *Node) Up(id int32) bool {
	if id == n.id || n.trans == nil {
		return id == n.id
	}
	return n.trans.Up(metadata.NodeName(id))
}

// Announce tells the other nodes where Kafka clients reach this one, by the listener's name. It is called at each start,
// before clients are served.
func (n *Node) Announce(ctx context.Context, listeners map[string]string) error {
	if n.trans != nil {
		return n.register(ctx, maps.Clone(listeners))
	}
	n.announced.Lock()
	defer n.announced.Unlock()
	n.announced.listeners = maps.Clone(listeners)
	return nil
}
