package cluster

import (
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// waitsFor says why a journal that is on its way to other nodes gets no further: nobody leads it and nodes that have its copies are
// down, so that there may not be most of them. Empty: it gets on.
func (n *Node) waitsFor(s *metadata.Stream, journal int32) string {
	leaving := s.LeavingOf(journal)
	if len(leaving) == 0 {
		return ""
	}
	p, err := n.journals.partition(s, journal) // the first partition of a journal has its number
	if err != nil {
		return ""
	}
	if leader, _ := p.Leader(); leader >= 0 && n.Up(leader) {
		return ""
	}
	on := metadata.NodesOf(append(slices.Clone(s.ReplicasOf(journal)), leaving...))
	slices.Sort(on)
	on = slices.Compact(on)
	down := slices.DeleteFunc(slices.Clone(on), n.Up)
	if len(down) == 0 {
		return "" // it elects a leader
	}
	return fmt.Sprintf("journal %d of stream %s waits on its way: nobody leads it, and of the nodes that have or get a copy, %v, those that are down are %v; it goes on when most of its copies are up: start %v, or, if they are gone for good, delete the stream",
		journal, s.Name, on, down, down)
}
