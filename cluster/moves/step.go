package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// atOnce is how many journals are on their way to other nodes at a time, in the whole cluster, unless somebody moves
// them one by one.
const atOnce = 4

// Move is a change of where a journal lies.
type Move struct {
	Stream  string  `json:"stream"`
	Journal int32   `json:"journal"`
	From    []int32 `json:"from"`
	To      []int32 `json:"to"`

	id     metadata.StreamID
	wanted int // how many copies it is to have, if not as many now
}

// Progress is how far a change of many journals has come. What it is worked out from is what there is: whoever asks
// again, after whatever, goes on.
type Progress struct {
	// Begun were begun by this call, Waiting come after those that are on their way.
	Begun   []Move `json:"begun,omitempty"`
	Waiting []Move `json:"waiting,omitempty"`
	// Moving is how many journals are on their way.
	Moving int `json:"moving"`
	// Waits says of those that get no further what they wait for.
	Waits []string `json:"waits,omitempty"`
	// Done says that nothing is left.
	Done bool `json:"done"`
}

// planner works out what has to change, of journals as they lie and are named in another list of the same order.
type planner func(journals []placement.Journal, at []Move) ([]placement.Change, error)

// step works out what has to change and begins as much of it as may be on its way at a time. Nobody waits for copies
// on the node that is being emptied, which may be dead.
func (m *Mover) step(ctx context.Context, dry bool, emptied int32, plan planner) (p Progress, err error) {
	if m.o.Alone {
		return p, fmt.Errorf("%w: this node is alone", metadata.ErrInvalidReplication)
	}
	if err := m.o.Sync(ctx); err != nil {
		return p, err
	}
	var journals []placement.Journal
	var at []Move
	for _, s := range m.o.Meta.Streams() {
		for j := range s.Journals {
			journals = append(journals, placement.Journal{Replicas: metadata.NodesOf(s.ReplicasOf(j))})
			at = append(at, Move{Stream: s.Name, Journal: j, id: s.ID, wanted: s.WantedOf(j)})
			if m.onItsWay(s, j, emptied) {
				p.Moving++
				if why := m.WaitsFor(s, j); why != "" {
					p.Waits = append(p.Waits, why)
				}
			}
		}
	}
	changes, err := plan(journals, at)
	if err != nil {
		return p, err
	}
	p.Done = len(changes) == 0 && p.Moving == 0
	for _, c := range changes {
		move := at[c.Journal]
		move.From, move.To = c.From, c.To
		if dry || c.Copies() > 0 && p.Moving >= atOnce {
			p.Waiting = append(p.Waiting, move)
			continue
		}
		if err := m.set(ctx, move.id, move.Journal, move.To, move.wanted); errors.Is(err, metadata.ErrUnknownStream) {
			continue // it was deleted meanwhile
		} else if err != nil {
			return p, fmt.Errorf("moving journal %d of stream %s to %v: %w", move.Journal, move.Stream, move.To, err)
		}
		p.Begun = append(p.Begun, move)
		if c.Copies() > 0 {
			p.Moving++
		}
	}
	return p, nil
}

// onItsWay says whether copies of a journal are being made or given up, or one has to catch up.
func (m *Mover) onItsWay(s *metadata.Stream, journal int32, emptied int32) bool {
	if len(s.LeavingOf(journal)) > 0 {
		return true
	}
	lead, err := m.o.Lead(metadata.StreamJournal{Stream: s.ID, Journal: journal})
	if err != nil {
		return false
	}
	for _, r := range s.ReplicasOf(journal) {
		if r.Node != emptied && m.o.Up(r.Node) && !slices.Contains(lead.InSync, r.Node) {
			return true
		}
	}
	return false
}
