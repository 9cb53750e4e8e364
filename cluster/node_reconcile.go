package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
)

// reconcileEvery is how often a leader compares its groups with what they are to be, if nothing changes.
const reconcileEvery = 500 * time.Millisecond

// reconcileGroups brings the groups that this node leads to the members that they are to have, until the node closes.
func (n *Node) reconcileGroups() {
	told := retry.Told{}
	for {
		changed := n.meta.Changed()
		for _, s := range n.meta.Streams() {
			l, err := n.journals.live(s)
			if err != nil {
				continue
			}
			for _, h := range l.journals {
				err := n.reconcileGroup(s, h)
				if err == nil && len(told) == 0 {
					continue
				}
				what := fmt.Sprint("members ", h.stream, h.number)
				if err == nil {
					delete(told, what)
				} else if n.ctx.Err() == nil && told.Fresh(what, err.Error()) {
					n.logger.Warn("the members of a journal's group could not be changed; trying again", "stream", s.Name, "journal", h.number, "error", err)
				}
			}
		}
		select {
		case <-changed:
		case <-time.After(reconcileEvery):
		case <-n.ctx.Done():
			return
		}
	}
}

// reconcileGroup takes the next step for one journal, if this node leads it.
func (n *Node) reconcileGroup(s *metadata.Stream, h *journalHandle) error {
	g := h.opened()
	if g == nil || !g.Serves() {
		return nil
	}
	servers, wanted := g.Servers(), s.ReplicasOf(h.number)
	in := func(r metadata.Replica) (raft.Server, bool) {
		i := slices.IndexFunc(servers, func(x raft.Server) bool { return x.ID == r.ID() })
		if i < 0 {
			return raft.Server{}, false
		}
		return servers[i], true
	}
	// An old copy goes as soon as the group does not count on it: a new one on the same node waits for that.
	for _, r := range s.LeavingOf(h.number) {
		if _, there := in(r); !there {
			if err := g.Settled(); err != nil {
				return err
			}
			_, err := n.proposer.propose(n.ctx, metadata.Command{DropReplica: &metadata.DropReplica{ID: h.stream, Journal: h.number, Replica: r}})
			return err
		}
	}
	complete := true
	for _, r := range wanted {
		server, there := in(r)
		switch {
		case there && server.Suffrage == raft.Voter:
			continue
		case there && g.Near(r.ID()):
			return g.AddVoter(string(r.ID()), string(r.Address()), changeWithin)
		case there:
			complete = false // it is getting what it lacks
			continue
		}
		for _, old := range servers { // another copy that was on the same node
			if old.Address == r.Address() {
				return n.giveUp(g, old, wanted)
			}
		}
		return g.AddNonvoter(string(r.ID()), string(r.Address()), changeWithin)
	}
	if !complete {
		return nil
	}
	for _, old := range servers {
		if !slices.ContainsFunc(wanted, func(r metadata.Replica) bool { return r.ID() == old.ID }) {
			return n.giveUp(g, old, wanted)
		}
	}
	return nil
}

// giveUp takes a member out. The leader hands over first, and its successor does it.
func (n *Node) giveUp(g *raftgroup.Group, old raft.Server, wanted []metadata.Replica) error {
	if metadata.NodeAt(old.Address) != n.id {
		return g.RemoveMember(string(old.ID), changeWithin)
	}
	errs := []error{errors.New("no other member can lead")}
	for _, r := range wanted {
		if r.Node == n.id {
			continue
		}
		err := g.HandTo(r.ID(), r.Address())
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
