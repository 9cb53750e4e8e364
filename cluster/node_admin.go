package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
)

// transferCall asks the leader of a journal to hand it to another node.
type transferCall struct {
	metadata.StreamJournal
	To int32 `json:"to"`
}

// Transfer hands the lead of a journal to another one of its replicas, which must have nearly all of it.
func (n *Node) Transfer(ctx context.Context, id metadata.StreamID, journal, to int32) error {
	c := transferCall{metadata.StreamJournal{Stream: id, Journal: journal}, to}
	h, err := n.journals.get(c.StreamJournal)
	if err != nil {
		return err
	}
	switch leader, _ := h.leader(); leader {
	case to:
		return nil
	case n.id:
		return n.transfer(c)
	case -1:
		return ErrNotLeader
	default:
		return n.askNode(ctx, leader, callJournal, c, nil)
	}
}

func (n *Node) answerJournal(body []byte) error {
	var c transferCall
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	return n.transfer(c)
}

// transfer hands over what this node leads.
func (n *Node) transfer(c transferCall) error {
	h, err := n.journals.get(c.StreamJournal)
	if err != nil {
		return err
	}
	g := h.opened()
	if g == nil || !g.Serves() {
		return ErrNotLeader
	}
	s, ok := n.meta.StreamByID(c.Stream)
	if !ok {
		return metadata.ErrUnknownStream
	}
	r, ok := metadata.FindReplica(s.ReplicasOf(c.Journal), c.To)
	if !ok || !g.Near(r.ID()) {
		return fmt.Errorf("node %d has not all of the journal yet", c.To)
	}
	return g.HandTo(r.ID(), r.Address())
}

// stepAside tells the other nodes that this one's disk does not answer: they elect other leaders for what it leads.
func (n *Node) stepAside() {
	if n.trans == nil {
		return
	}
	for _, m := range n.meta.Members() {
		if m.ID != n.id {
			ctx, cancel := context.WithTimeout(n.ctx, time.Second)
			_ = n.callNode(ctx, m.ID, callStalled, nil, nil) // who is not told misses this node's answers sooner or later
			cancel()
		}
	}
}

// Prefer makes a replica of a journal the one that should lead it, for good, and hands it the lead. If that cannot be now,
// as the replica has not yet nearly all of the journal, later says so: it gets the lead when it can.
func (n *Node) Prefer(ctx context.Context, id metadata.StreamID, journal, to int32) (later, err error) {
	s, ok := n.meta.StreamByID(id)
	switch {
	case !ok:
		return nil, metadata.ErrUnknownStream
	case journal < 0 || journal >= s.Journals:
		return nil, metadata.ErrUnknownPartition
	}
	now := metadata.NodesOf(s.ReplicasOf(journal))
	if !slices.Contains(now, to) {
		return nil, fmt.Errorf("%w: the replicas of the journal are on nodes %v, not on %d: move it there first", metadata.ErrUnknownMember, now, to)
	}
	if now[0] != to {
		if err := n.moves.Reorder(ctx, s, journal, placement.Prefer(now, to)); err != nil {
			return nil, err
		}
	}
	return n.Transfer(ctx, id, journal, to), nil
}
