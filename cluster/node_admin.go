package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/placement"
)

// RemoveMember takes a node out of the cluster: what it has moves to others first, which takes as long as it takes; ctx
// ends the waiting, and a further call goes on. A node that is gone for good is taken out the same way, as long as every
// journal of it has a majority of its replicas elsewhere.
func (n *Node) RemoveMember(ctx context.Context, id int32) error {
	if n.trans == nil {
		return fmt.Errorf("%w: this node is alone", ErrUnknownMember)
	}
	if _, err := n.proposer.propose(ctx, command{LeaveCluster: &leaveCluster{ID: id}}); err != nil {
		return err
	}
	for {
		used := false
		for _, s := range n.meta.Streams() {
			if !s.uses(id) {
				continue
			}
			used = true
			if err := n.moveAway(ctx, s, id); err != nil {
				return err
			}
		}
		if !used {
			_, err := n.proposer.propose(ctx, command{RemoveMember: &removeMember{ID: id}})
			return err
		}
		if !pause(ctx, 10*retryPause) {
			return fmt.Errorf("node %d still has replicas: %w", id, ctx.Err())
		}
	}
}

// moveAway gives a node's replicas of a stream to others, or leaves a journal with fewer if there is no other node.
func (n *Node) moveAway(ctx context.Context, s *Stream, id int32) error {
	for j := range s.Journals {
		now := nodesOf(s.replicas(j))
		at := slices.Index(now, id)
		if at < 0 {
			continue
		}
		others := slices.DeleteFunc(n.candidates(), func(c placement.Node) bool { return slices.Contains(now, c.ID) })
		next := slices.Delete(slices.Clone(now), at, at+1)
		if to := placement.Pick(others, 1); to != nil {
			next = slices.Insert(next, at, to[0])
		}
		if len(next) == 0 {
			return fmt.Errorf("%w: node %d has the only replica of journal %d of %s, and no other node can take it", ErrMemberInUse, id, j, s.Name)
		}
		if err := n.SetReplicas(ctx, s.ID, j, next); err != nil {
			return err
		}
	}
	return nil
}

// transferCall asks the leader of a journal to hand it to another node.
type transferCall struct {
	journalKey
	To int32 `json:"to"`
}

// Transfer hands the lead of a journal to another one of its replicas, which must have nearly all of it.
func (n *Node) Transfer(ctx context.Context, id StreamID, journal, to int32) error {
	c := transferCall{journalKey{id, journal}, to}
	h, err := n.handleOf(c.journalKey)
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
	h, err := n.handleOf(c.journalKey)
	if err != nil {
		return err
	}
	g := h.opened()
	if g == nil || !g.serves() {
		return ErrNotLeader
	}
	s, ok := n.meta.StreamByID(c.Stream)
	if !ok {
		return ErrUnknownStream
	}
	r, ok := find(s.replicas(c.Journal), c.To)
	if !ok || !g.near(nodeName(c.To)) {
		return fmt.Errorf("%w: node %d has not all of the journal", ErrUnknownMember, c.To)
	}
	return appendErr(g.await(g.raft.LeadershipTransferToServer(r.serverID(), raft.ServerAddress(nodeName(c.To)))))
}

func (n *Node) handleOf(k journalKey) (*journalHandle, error) {
	s, ok := n.meta.StreamByID(k.Stream)
	if !ok {
		return nil, ErrUnknownStream
	}
	l, err := n.live(s)
	if err != nil {
		return nil, err
	}
	if k.Journal < 0 || int(k.Journal) >= len(l.journals) {
		return nil, ErrUnknownPartition
	}
	return l.journals[k.Journal], nil
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
