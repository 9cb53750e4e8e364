package cluster

import (
	"context"
	"maps"
	"sync"
)

// announced are this node's addresses for Kafka clients.
type announced struct {
	sync.Mutex
	listeners map[string]string // guarded by the mutex
}

// ID is this node's id in its cluster: above 0, and never another one's.
func (n *Node) ID() int32 { return foundingNode }

// Members returns the nodes of the cluster by their ids, this one among them.
func (n *Node) Members() []Member {
	n.announced.Lock()
	defer n.announced.Unlock()
	return []Member{{ID: foundingNode, Listeners: maps.Clone(n.announced.listeners)}}
}

// Announce tells the other nodes where Kafka clients reach this one, by the listener's name. It is called at each start,
// before clients are served.
func (n *Node) Announce(_ context.Context, listeners map[string]string) error {
	n.announced.Lock()
	defer n.announced.Unlock()
	n.announced.listeners = maps.Clone(listeners)
	return nil
}
