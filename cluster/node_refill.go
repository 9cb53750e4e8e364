package cluster

import (
	"context"
	"fmt"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// refill begins to make copies of journals that have fewer than they are to have, as a node was taken out and there was no
// other, once there are nodes that are up for them. It is done by the node that leads the metadata, some at a time.
func (n *Node) refill() {
	if !n.lacking() {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, changeWithin)
	defer cancel()
	_, err := n.moveStep(ctx, false, 0, func(journals []placement.Journal, at []JournalMove) (changes []placement.Change, err error) {
		asked := make([]placement.Journal, len(journals))
		for i, j := range journals {
			asked[i] = placement.Journal{Replicas: j.Replicas}
			if s, ok := n.meta.StreamByID(at[i].id); ok && n.lacks(s, at[i].Journal) {
				asked[i].Count = s.WantedOf(at[i].Journal)
			}
		}
		for _, c := range placement.Resize(n.candidates(), asked) {
			if len(c.To) > len(c.From) {
				changes = append(changes, c)
			}
		}
		return changes, nil
	})
	if err != nil && n.ctx.Err() == nil {
		n.logger.Warn("copies of journals that are missing could not be placed; trying again", "error", err)
	}
}

func (n *Node) lacking() bool {
	for _, s := range n.meta.Streams() {
		for j := range s.Journals {
			if n.lacks(s, j) {
				return true
			}
		}
	}
	return false
}

// lacks says whether a journal is to have more copies, and there are nodes for them. One on a node that is being emptied is
// for whoever empties it.
func (n *Node) lacks(s *metadata.Stream, journal int32) bool {
	placed := s.ReplicasOf(journal)
	if len(placed) >= s.WantedOf(journal) {
		return false
	}
	for _, r := range placed {
		if m, ok := n.meta.Member(r.Node); !ok || m.Leaving {
			return false
		}
	}
	for _, m := range n.meta.Members() {
		if _, has := metadata.FindReplica(placed, m.ID); !has && !m.Leaving && n.Up(m.ID) {
			return true
		}
	}
	return false
}

// roomFor is how many copies of a journal there should be now: as many as it is to have, as far as there are nodes.
func (n *Node) roomFor(s *metadata.Stream, journal int32) int {
	nodes := 0
	for _, m := range n.Members() {
		if !m.Leaving {
			nodes++
		}
	}
	return max(min(s.WantedOf(journal), nodes), min(len(s.ReplicasOf(journal)), s.WantedOf(journal)))
}

// want notes how many copies the journals of a stream are to have, before they are changed to that.
func (n *Node) want(ctx context.Context, s *metadata.Stream, copies int) error {
	for j := range s.Journals {
		if s.WantedOf(j) == copies {
			continue
		}
		if err := n.setReplicas(ctx, s.ID, j, metadata.NodesOf(s.ReplicasOf(j)), copies); err != nil {
			return fmt.Errorf("noting that journal %d of stream %s is to have %d replicas: %w", j, s.Name, copies, err)
		}
	}
	return nil
}
