package cluster

import (
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// usualReplicas is how many nodes have a journal if nobody says.
const usualReplicas = 3

// place decides which nodes get the journals of a new stream.
func (n *Node) place(s *metadata.Stream, replicas int32, as [][]int32) error {
	if len(as) > 0 {
		return n.placeAs(s, as)
	}
	if n.trans == nil {
		if replicas > 1 || replicas < 0 {
			return fmt.Errorf("%w: %d, and there is one node", metadata.ErrInvalidReplication, replicas)
		}
		return nil
	}
	nodes := n.candidates()
	for i := range nodes { // streams are made while a node is down, too: it gets its replicas when it comes back
		nodes[i].Closed, nodes[i].Down = false, nodes[i].Closed
	}
	wanted := replicas
	if replicas == 0 {
		wanted, replicas = usualReplicas, int32(min(usualReplicas, len(nodes)))
	}
	if replicas < 1 || int(replicas) > len(nodes) {
		return fmt.Errorf("%w: %d, and there are %d nodes", metadata.ErrInvalidReplication, replicas, len(nodes))
	}
	for range s.Journals {
		var own []metadata.Replica
		for _, id := range placement.Pick(nodes, int(replicas)) {
			own = append(own, metadata.Replica{Node: id})
		}
		s.Placement = append(s.Placement, own)
	}
	s.WantAll(wanted) // what is missing is made when there are nodes for it
	return nil
}

// placeAs puts a new stream where somebody says.
func (n *Node) placeAs(s *metadata.Stream, as [][]int32) error {
	if int(s.Journals) != len(as) {
		return fmt.Errorf("%w: nodes are given for %d journals, the stream has %d", metadata.ErrInvalidReplication, len(as), s.Journals)
	}
	for j, ids := range as {
		var own []metadata.Replica
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				return fmt.Errorf("%w: journal %d is to lie on node %d twice", metadata.ErrInvalidReplication, j, id)
			}
			if !slices.ContainsFunc(n.Members(), func(m metadata.Member) bool { return m.ID == id && !m.Leaving }) {
				return fmt.Errorf("%w %d", metadata.ErrUnknownMember, id)
			}
			own = append(own, metadata.Replica{Node: id})
		}
		if len(own) == 0 {
			return fmt.Errorf("%w: journal %d is to lie on no node", metadata.ErrInvalidReplication, j)
		}
		if n.trans != nil { // a node alone has everything
			s.Placement = append(s.Placement, own)
		}
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
			for i, r := range s.ReplicasOf(j) {
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
