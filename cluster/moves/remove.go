package moves

import (
	"context"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// Removal says which node is taken out.
type Removal struct {
	Node int32 `json:"node"`
	// Fewer leaves journals with fewer replicas for which there is no other node.
	Fewer bool `json:"fewer,omitempty"`
	// Undo ends the removal: the node stays, with what it still has.
	Undo bool `json:"undo,omitempty"`
}

// Remove begins some of the moves that empty a node, and says what is left; when nothing is, the node is taken out of
// the cluster. The node gets nothing new from the first step on. One that is gone for good is taken out the same way, as
// long as every journal of it has a majority of its replicas elsewhere.
func (m *Mover) Remove(ctx context.Context, r Removal) (Progress, error) {
	if m.o.Alone {
		return Progress{}, fmt.Errorf("%w: this node is alone", metadata.ErrUnknownMember)
	}
	plan := func(journals []placement.Journal, at []Move) ([]placement.Change, error) {
		changes, err := m.planLeave(r, journals)
		if err == nil {
			err = m.movable(changes, at)
		}
		return changes, err
	}
	if _, err := m.step(ctx, true, r.Node, plan); err != nil && !r.Undo {
		return Progress{}, err // before anybody holds it for leaving
	}
	if _, err := m.o.Propose(ctx, metadata.Command{LeaveCluster: &metadata.LeaveCluster{ID: r.Node, Undo: r.Undo}}); err != nil {
		return Progress{}, err
	}
	if r.Undo {
		return Progress{Done: true}, nil
	}
	p, err := m.step(ctx, false, r.Node, plan)
	if err != nil || !p.Done {
		return p, err
	}
	for _, s := range m.o.Meta.Streams() {
		if s.Uses(r.Node) { // its groups still count on what it has
			p.Done = false
			return p, nil
		}
	}
	if err := m.o.Sync(ctx); err != nil {
		return p, err
	}
	if m.o.Needed(r.Node) {
		p.Done, p.Waits = false, append(p.Waits, fmt.Sprintf("the metadata can't go on without node %d yet: another one is to have its vote", r.Node))
		return p, nil
	}
	_, err = m.o.Propose(ctx, metadata.Command{RemoveMember: &metadata.RemoveMember{ID: r.Node}})
	return p, err
}

func (m *Mover) planLeave(r Removal, journals []placement.Journal) ([]placement.Change, error) {
	nodes := slices.DeleteFunc(m.candidates(), func(c placement.Node) bool { return c.ID == r.Node })
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: node %d is the last one", metadata.ErrMemberInUse, r.Node)
	}
	changes := placement.Leave(nodes, journals)
	for _, c := range changes {
		if len(c.To) < len(c.From) && !r.Fewer {
			return nil, fmt.Errorf("%w: journals have %d replicas, and without node %d there are %d nodes that are up for them: start another node first, or agree to fewer replicas",
				metadata.ErrMemberInUse, len(c.From), r.Node, open(nodes))
		}
	}
	return changes, nil
}

// movable refuses moves that would wait for ever: a journal changes its copies by its own log, which takes most of them.
func (m *Mover) movable(changes []placement.Change, at []Move) error {
	for _, c := range changes {
		down := slices.DeleteFunc(slices.Clone(c.From), m.o.Up)
		if 2*len(down) >= len(c.From) {
			j := at[c.Journal]
			return fmt.Errorf("%w: journal %d of stream %s lies on nodes %v, and can move only while most of them are up: start %v first, or, if they are gone for good, delete the stream (daybook cluster status shows all such journals)",
				ErrMembersDown, j.Journal, j.Stream, c.From, down)
		}
	}
	return nil
}
