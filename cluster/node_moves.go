package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
	"github.com/daybook-data/daybook/internal/retry"
)

// movesAtOnce is how many journals are on their way to other nodes at a time, in the whole cluster, unless somebody moves
// them one by one.
const movesAtOnce = 4

// JournalMove is a change of where a journal lies.
type JournalMove struct {
	Stream  string  `json:"stream"`
	Journal int32   `json:"journal"`
	From    []int32 `json:"from"`
	To      []int32 `json:"to"`

	id     metadata.StreamID
	wanted int // how many copies it is to have, if not as many now
}

// MoveProgress is how far a change of many journals has come. What it is worked out from is what there is: whoever asks
// again, after whatever, goes on.
type MoveProgress struct {
	// Begun were begun by this call, Waiting come after those that are on their way.
	Begun   []JournalMove `json:"begun,omitempty"`
	Waiting []JournalMove `json:"waiting,omitempty"`
	// Moving is how many journals are on their way.
	Moving int `json:"moving"`
	// Waits says of those that get no further what they wait for.
	Waits []string `json:"waits,omitempty"`
	// Done says that nothing is left.
	Done bool `json:"done"`
}

// RebalanceStep begins some of the moves that spread replicas and leads over the nodes, and says what is left. A node that
// is down is no reason to move what it has: it has to be brought back or taken out first.
func (n *Node) RebalanceStep(ctx context.Context, dry bool) (MoveProgress, error) {
	return n.moveStep(ctx, dry, 0, func(journals []placement.Journal, _ []JournalMove) ([]placement.Change, error) {
		var down []int32
		for _, m := range n.meta.Members() {
			if !n.Up(m.ID) {
				down = append(down, m.ID)
			}
		}
		if len(down) > 0 {
			return nil, fmt.Errorf("%w: %v: start them, or take them out, before the load is spread", ErrMembersDown, down)
		}
		return placement.Balance(n.candidates(), journals), nil
	})
}

// ResizeStep begins some of the moves that give a stream's journals another number of replicas, and says what is left.
func (n *Node) ResizeStep(ctx context.Context, stream string, count int, dry bool) (MoveProgress, error) {
	if err := n.SyncMeta(ctx); err != nil {
		return MoveProgress{}, err
	}
	s, ok := n.meta.Stream(stream)
	if !ok {
		return MoveProgress{}, fmt.Errorf("%w: %s", metadata.ErrUnknownStream, stream)
	}
	if nodes := open(n.candidates()); count < 1 || count > nodes {
		return MoveProgress{}, fmt.Errorf("%w: %d, of 1 to %d, as many nodes as are up", metadata.ErrInvalidReplication, count, nodes)
	}
	if !dry {
		if err := n.want(ctx, s, count); err != nil {
			return MoveProgress{}, err
		}
	}
	return n.moveStep(ctx, dry, 0, func(journals []placement.Journal, at []JournalMove) (changes []placement.Change, err error) {
		resized := slices.Clone(journals)
		for i := range resized {
			if at[i].id == s.ID {
				resized[i].Count = count
			}
		}
		for _, c := range placement.Resize(n.candidates(), resized) {
			if at[c.Journal].id == s.ID {
				changes = append(changes, c)
			}
		}
		return changes, nil
	})
}

// Removal says which node is taken out.
type Removal struct {
	Node int32 `json:"node"`
	// Fewer leaves journals with fewer replicas for which there is no other node.
	Fewer bool `json:"fewer,omitempty"`
	// Undo ends the removal: the node stays, with what it still has.
	Undo bool `json:"undo,omitempty"`
}

// RemoveStep begins some of the moves that empty a node, and says what is left; when nothing is, the node is taken out of
// the cluster. The node gets nothing new from the first step on. One that is gone for good is taken out the same way, as
// long as every journal of it has a majority of its replicas elsewhere.
func (n *Node) RemoveStep(ctx context.Context, r Removal) (MoveProgress, error) {
	if n.trans == nil {
		return MoveProgress{}, fmt.Errorf("%w: this node is alone", metadata.ErrUnknownMember)
	}
	plan := func(journals []placement.Journal, at []JournalMove) ([]placement.Change, error) {
		changes, err := n.planLeave(r, journals)
		if err == nil {
			err = n.movable(changes, at)
		}
		return changes, err
	}
	if _, err := n.moveStep(ctx, true, r.Node, plan); err != nil && !r.Undo {
		return MoveProgress{}, err // before anybody holds it for leaving
	}
	if _, err := n.proposer.propose(ctx, metadata.Command{LeaveCluster: &metadata.LeaveCluster{ID: r.Node, Undo: r.Undo}}); err != nil {
		return MoveProgress{}, err
	}
	if r.Undo {
		return MoveProgress{Done: true}, nil
	}
	p, err := n.moveStep(ctx, false, r.Node, plan)
	if err != nil || !p.Done {
		return p, err
	}
	for _, s := range n.meta.Streams() {
		if s.Uses(r.Node) { // its groups still count on what it has
			p.Done = false
			return p, nil
		}
	}
	if err := n.SyncMeta(ctx); err != nil {
		return p, err
	}
	if n.metadataNeeds(r.Node) {
		p.Done, p.Waits = false, append(p.Waits, fmt.Sprintf("the metadata can't go on without node %d yet: another one is to have its vote", r.Node))
		return p, nil
	}
	_, err = n.proposer.propose(ctx, metadata.Command{RemoveMember: &metadata.RemoveMember{ID: r.Node}})
	return p, err
}

// metadataNeeds says whether a node leads the metadata, or the other voters that are up are too few to elect a leader. Once
// it is no member nobody speaks to it, so its vote would be missing for good.
func (n *Node) metadataNeeds(id int32) bool {
	voters, others := 0, 0
	for _, s := range n.metaGroup.Servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if v := metadata.NodeAt(s.Address); v != id && (v == n.id || n.Up(v)) {
			others++
		}
	}
	return n.Controller() == id || 2*others <= voters
}

// RemoveMember takes steps until the node is out; ctx ends the waiting, and a further call goes on.
func (n *Node) RemoveMember(ctx context.Context, r Removal) error {
	for {
		p, err := n.RemoveStep(ctx, r)
		if err != nil || p.Done {
			return err
		}
		if !retry.Pause(ctx, 10*retryPause) {
			return fmt.Errorf("node %d still has replicas: %w", r.Node, ctx.Err())
		}
	}
}

func (n *Node) planLeave(r Removal, journals []placement.Journal) ([]placement.Change, error) {
	nodes := slices.DeleteFunc(n.candidates(), func(c placement.Node) bool { return c.ID == r.Node })
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
func (n *Node) movable(changes []placement.Change, at []JournalMove) error {
	for _, c := range changes {
		down := slices.DeleteFunc(slices.Clone(c.From), n.Up)
		if 2*len(down) >= len(c.From) {
			m := at[c.Journal]
			return fmt.Errorf("%w: journal %d of stream %s lies on nodes %v, and can move only while most of them are up: start %v first, or, if they are gone for good, delete the stream (daybook cluster status shows all such journals)",
				ErrMembersDown, m.Journal, m.Stream, c.From, down)
		}
	}
	return nil
}

// planner works out what has to change, of journals as they lie and are named in another list of the same order.
type planner func(journals []placement.Journal, at []JournalMove) ([]placement.Change, error)

// moveStep works out what has to change and begins as much of it as may be on its way at a time. Nobody waits for copies
// on the node that is being emptied, which may be dead.
func (n *Node) moveStep(ctx context.Context, dry bool, emptied int32, plan planner) (p MoveProgress, err error) {
	if n.trans == nil {
		return p, fmt.Errorf("%w: this node is alone", metadata.ErrInvalidReplication)
	}
	if err := n.SyncMeta(ctx); err != nil {
		return p, err
	}
	var journals []placement.Journal
	var at []JournalMove
	for _, s := range n.meta.Streams() {
		for j := range s.Journals {
			journals = append(journals, placement.Journal{Replicas: metadata.NodesOf(s.ReplicasOf(j))})
			at = append(at, JournalMove{Stream: s.Name, Journal: j, id: s.ID, wanted: s.WantedOf(j)})
			if n.onItsWay(s, j, emptied) {
				p.Moving++
				if why := n.waitsFor(s, j); why != "" {
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
		m := at[c.Journal]
		m.From, m.To = c.From, c.To
		if dry || c.Copies() > 0 && p.Moving >= movesAtOnce {
			p.Waiting = append(p.Waiting, m)
			continue
		}
		if err := n.setReplicas(ctx, m.id, m.Journal, m.To, m.wanted); errors.Is(err, metadata.ErrUnknownStream) {
			continue // it was deleted meanwhile
		} else if err != nil {
			return p, fmt.Errorf("moving journal %d of stream %s to %v: %w", m.Journal, m.Stream, m.To, err)
		}
		p.Begun = append(p.Begun, m)
		if c.Copies() > 0 {
			p.Moving++
		}
	}
	return p, nil
}

// onItsWay says whether copies of a journal are being made or given up, or one has to catch up.
func (n *Node) onItsWay(s *metadata.Stream, journal int32, emptied int32) bool {
	if len(s.LeavingOf(journal)) > 0 {
		return true
	}
	p, err := n.journals.partition(s, journal) // the first partition of a journal has its number
	if err != nil {
		return false
	}
	inSync := p.InSync()
	for _, r := range s.ReplicasOf(journal) {
		if r.Node != emptied && n.Up(r.Node) && !slices.Contains(inSync, r.Node) {
			return true
		}
	}
	return false
}
