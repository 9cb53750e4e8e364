package moves

import (
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// usualReplicas is how many nodes have a journal if nobody says.
const usualReplicas = 3

// Place decides which nodes get the journals of a new stream.
func (m *Mover) Place(s *metadata.Stream, replicas int32, as [][]int32) error {
	if len(as) > 0 {
		return m.placeAs(s, as)
	}
	if m.o.Alone {
		if replicas > 1 || replicas < 0 {
			return fmt.Errorf("%w: %d, and there is one node", metadata.ErrInvalidReplication, replicas)
		}
		return nil
	}
	nodes := m.candidates()
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
func (m *Mover) placeAs(s *metadata.Stream, as [][]int32) error {
	if int(s.Journals) != len(as) {
		return fmt.Errorf("%w: nodes are given for %d journals, the stream has %d", metadata.ErrInvalidReplication, len(as), s.Journals)
	}
	for j, ids := range as {
		var own []metadata.Replica
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				return fmt.Errorf("%w: journal %d is to lie on node %d twice", metadata.ErrInvalidReplication, j, id)
			}
			if !m.takes(id) {
				return fmt.Errorf("%w %d", metadata.ErrUnknownMember, id)
			}
			own = append(own, metadata.Replica{Node: id})
		}
		if len(own) == 0 {
			return fmt.Errorf("%w: journal %d is to lie on no node", metadata.ErrInvalidReplication, j)
		}
		if !m.o.Alone { // a node alone has everything
			s.Placement = append(s.Placement, own)
		}
	}
	return nil
}

// takes says whether a node can get journals.
func (m *Mover) takes(id int32) bool {
	if m.o.Alone {
		return id == m.o.Self
	}
	node, ok := m.o.Meta.Member(id)
	return ok && !node.Leaving
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
func (m *Mover) candidates() (nodes []placement.Node) {
	at := map[int32]int{}
	for _, node := range m.o.Meta.Members() {
		if !node.Leaving {
			at[node.ID] = len(nodes)
			nodes = append(nodes, placement.Node{ID: node.ID, Rack: node.Rack, Closed: !m.o.Up(node.ID)})
		}
	}
	for _, s := range m.o.Meta.Streams() {
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
