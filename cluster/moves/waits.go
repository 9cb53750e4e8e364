package moves

import (
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// WaitsFor says why a journal that is on its way to other nodes gets no further: nobody leads it and nodes that have its copies are
// down, so that there may not be most of them. Empty: it gets on.
func (m *Mover) WaitsFor(s *metadata.Stream, journal int32) string {
	leaving := s.LeavingOf(journal)
	if len(leaving) == 0 {
		return ""
	}
	lead, err := m.o.Lead(metadata.StreamJournal{Stream: s.ID, Journal: journal})
	if err != nil || lead.Node >= 0 && m.o.Up(lead.Node) {
		return ""
	}
	on := metadata.NodesOf(append(slices.Clone(s.ReplicasOf(journal)), leaving...))
	slices.Sort(on)
	on = slices.Compact(on)
	down := slices.DeleteFunc(slices.Clone(on), m.o.Up)
	if len(down) == 0 {
		return "" // it elects a leader
	}
	return fmt.Sprintf("journal %d of stream %s waits on its way: nobody leads it, and of the nodes that have or get a copy, %v, those that are down are %v; it goes on when most of its copies are up: start %v, or, if they are gone for good, delete the stream",
		journal, s.Name, on, down, down)
}
