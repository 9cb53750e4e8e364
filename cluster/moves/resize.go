package moves

import (
	"context"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// Resize begins some of the moves that give a stream's journals another number of replicas, and says what is left.
func (m *Mover) Resize(ctx context.Context, stream string, count int, dry bool) (Progress, error) {
	if err := m.o.Sync(ctx); err != nil {
		return Progress{}, err
	}
	s, ok := m.o.Meta.Stream(stream)
	if !ok {
		return Progress{}, fmt.Errorf("%w: %s", metadata.ErrUnknownStream, stream)
	}
	if nodes := open(m.candidates()); count < 1 || count > nodes {
		return Progress{}, fmt.Errorf("%w: %d, of 1 to %d, as many nodes as are up", metadata.ErrInvalidReplication, count, nodes)
	}
	if !dry {
		if err := m.want(ctx, s, count); err != nil {
			return Progress{}, err
		}
	}
	return m.step(ctx, dry, 0, func(journals []placement.Journal, at []Move) (changes []placement.Change, err error) {
		resized := slices.Clone(journals)
		for i := range resized {
			if at[i].id == s.ID {
				resized[i].Count = count
			}
		}
		for _, c := range placement.Resize(m.candidates(), resized) {
			if at[c.Journal].id == s.ID {
				changes = append(changes, c)
			}
		}
		return changes, nil
	})
}

// want notes how many copies the journals of a stream are to have, before they are changed to that.
func (m *Mover) want(ctx context.Context, s *metadata.Stream, copies int) error {
	for j := range s.Journals {
		if s.WantedOf(j) == copies {
			continue
		}
		if err := m.set(ctx, s.ID, j, metadata.NodesOf(s.ReplicasOf(j)), copies); err != nil {
			return fmt.Errorf("noting that journal %d of stream %s is to have %d replicas: %w", j, s.Name, copies, err)
		}
	}
	return nil
}
