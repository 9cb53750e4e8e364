package moves

import (
	"context"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// refillWithin bounds one look for missing copies.
const refillWithin = 10 * time.Second

// Refill begins to make copies of journals that have fewer than they are to have, as a node was taken out and there was no
// other, once there are nodes that are up for them. It is done by the node that leads the metadata, some at a time.
func (m *Mover) Refill(ctx context.Context) {
	if !m.lacking() {
		return
	}
	within, cancel := context.WithTimeout(ctx, refillWithin)
	defer cancel()
	_, err := m.step(within, false, 0, func(journals []placement.Journal, at []Move) (changes []placement.Change, err error) {
		asked := make([]placement.Journal, len(journals))
		for i, j := range journals {
			asked[i] = placement.Journal{Replicas: j.Replicas}
			if s, ok := m.o.Meta.StreamByID(at[i].id); ok && m.lacks(s, at[i].Journal) {
				asked[i].Count = s.WantedOf(at[i].Journal)
			}
		}
		for _, c := range placement.Resize(m.candidates(), asked) {
			if len(c.To) > len(c.From) {
				changes = append(changes, c)
			}
		}
		return changes, nil
	})
	if err != nil && ctx.Err() == nil {
		m.o.Logger.Warn("copies of journals that are missing could not be placed; trying again", "error", err)
	}
}

func (m *Mover) lacking() bool {
	for _, s := range m.o.Meta.Streams() {
		for j := range s.Journals {
			if m.lacks(s, j) {
				return true
			}
		}
	}
	return false
}

// lacks says whether a journal is to have more copies, and there are nodes for them. One on a node that is being emptied is
// for whoever empties it.
func (m *Mover) lacks(s *metadata.Stream, journal int32) bool {
	placed := s.ReplicasOf(journal)
	if len(placed) >= s.WantedOf(journal) {
		return false
	}
	for _, r := range placed {
		if node, ok := m.o.Meta.Member(r.Node); !ok || node.Leaving {
			return false
		}
	}
	for _, node := range m.o.Meta.Members() {
		if _, has := metadata.FindReplica(placed, node.ID); !has && !node.Leaving && m.o.Up(node.ID) {
			return true
		}
	}
	return false
}
