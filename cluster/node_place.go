package cluster

import (
	"fmt"

	"github.com/daybook-data/daybook/cluster/placement"
)

// usualReplicas is how many nodes have a journal if nobody says.
const usualReplicas = 3

// place decides which nodes get the journals of a new stream.
func (n *Node) place(s *Stream, replicas int32) error {
	if n.trans == nil {
		if replicas > 1 || replicas < 0 {
			return fmt.Errorf("%w: %d, and there is one node", ErrInvalidReplication, replicas)
		}
		return nil
	}
	nodes := n.candidates()
	for i := range nodes { // streams are made while a node is down, too: it gets its replicas when it comes back
		nodes[i].Closed, nodes[i].Down = false, nodes[i].Closed
	}
	if replicas == 0 {
		replicas = int32(min(usualReplicas, len(nodes)))
	}
	if replicas < 1 || int(replicas) > len(nodes) {
		return fmt.Errorf("%w: %d, and there are %d nodes", ErrInvalidReplication, replicas, len(nodes))
	}
	if open(nodes) < int(replicas) { // some are down: they get what they are to have when they come back
		for i := range nodes {
			nodes[i].Closed = false
		}
	}
	for range s.Journals {
		var own []Replica
		for _, id := range placement.Pick(nodes, int(replicas)) {
			own = append(own, Replica{Node: id})
		}
		s.Placement = append(s.Placement, own)
	}
	return nil
}

// open counts the nodes that can get replicas now.
func open(nodes []placement.Node) (n int) {
	for _, node := range nodes {
		if !node.Closed {
			n++
		}
	}
	return n
}

// candidates are the nodes that can get replicas, with what they have. Those that are down are closed.
func (n *Node) candidates() (nodes []placement.Node) {
	at := map[int32]int{}
	for _, m := range n.meta.Members() {
		if !m.Leaving {
			at[m.ID] = len(nodes)
			nodes = append(nodes, placement.Node{ID: m.ID, Rack: m.Rack, Closed: !n.Up(m.ID)})
		}
	}
	for _, s := range n.meta.Streams() {
		for j := range s.Journals {
			for i, r := range s.replicas(j) {
				if k, ok := at[r.Node]; ok {
					nodes[k].Replicas++
					if i == 0 {
						nodes[k].Leads++
					}
				}
			}
		}
	}
	return nodes
}
