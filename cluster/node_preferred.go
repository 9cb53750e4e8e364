package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/placement"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
)

// preferEvery is how often a leader looks whether others should lead what it leads.
const preferEvery = time.Second

// preferLeaders hands leads to the first of each journal's replicas until the node closes: after a restart, or when
// another one was made the first.
func (n *Node) preferLeaders() {
	leads := placement.NewLeads[metadata.StreamJournal](10 * n.opts.timeout())
	for retry.Pause(n.ctx, preferEvery) {
		now := time.Now()
		for _, m := range n.meta.Members() {
			leads.Saw(m.ID, m.ID != n.id && !m.Leaving && n.Up(m.ID) && !n.leads.isClosing(m.ID), now)
		}
		for _, l := range leads.Due(n.unwantedLeads(), now) {
			if err := n.transfer(transferCall{l.Journal, l.To}); err != nil && n.ctx.Err() == nil {
				n.logger.Info("a lead could not be handed to the node that should have it; trying again later", "stream", l.Journal.Stream.String(), "journal", l.Journal.Journal, "node", l.To, "error", err)
			}
		}
	}
}

// unwantedLeads is what this node leads and another one should, which has all of it.
func (n *Node) unwantedLeads() (all []placement.Lead[metadata.StreamJournal]) {
	n.journals.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) {
		s, ok := n.meta.StreamByID(h.stream)
		if !ok || !g.Serves() {
			return
		}
		if first := s.ReplicasOf(h.number)[0]; first.Node != n.id && g.HasVoter(first.ID()) && g.Near(first.ID()) {
			all = append(all, placement.Lead[metadata.StreamJournal]{Journal: h.key(), To: first.Node})
		}
	})
	return all
}

// handOverPatience is how long a node that closes tries to hand over what it leads.
const handOverPatience = 10 * time.Second

// HandOver hands what this node leads to other nodes, and returns when it leads nothing more, or nobody can take the
// rest. It is called before the node is closed on purpose: its clients then find other leaders at once, where they would
// otherwise wait until this node is missed. Nobody hands leads back meanwhile.
func (n *Node) HandOver(ctx context.Context) {
	if n.trans == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverPatience)
	defer cancel()
	n.closing.Store(true)
	n.tellAll(ctx, n.journals.led(0))
	for {
		left := n.handOverJournals(ctx)
		if _, leads := n.Coordinator(); leads && n.hasHeir() {
			_ = n.metaGroup.HandOver(n.isHeir) // tried again below
			_, leads = n.Coordinator()
			if leads {
				left++
			}
		}
		if left == 0 || !retry.Pause(ctx, retryPause) {
			return
		}
	}
}

// hasHeir says whether there is another node that can lead the metadata. Of two nodes only one votes there: it has none.
func (n *Node) hasHeir() bool { return slices.ContainsFunc(n.metaGroup.Servers(), n.isHeir) }

// isHeir says whether a voter of the metadata is another node that is up, and stays.
func (n *Node) isHeir(s raft.Server) bool {
	id := metadata.NodeAt(s.Address)
	m, ok := n.meta.Member(id)
	return s.Suffrage == raft.Voter && id != n.id && ok && !m.Leaving && n.Up(id) && !n.leads.isClosing(id)
}

// handOverJournals tries once for each journal, and returns how many are left that somebody could take.
func (n *Node) handOverJournals(ctx context.Context) (left int) {
	n.journals.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) {
		s, ok := n.meta.StreamByID(h.stream)
		if !ok || ctx.Err() != nil || !g.Serves() {
			return
		}
		able := 0
		for _, r := range s.ReplicasOf(h.number) {
			if r.Node == n.id || !n.Up(r.Node) || n.leads.isClosing(r.Node) || !g.HasVoter(r.ID()) {
				continue
			}
			if n.transfer(transferCall{h.key(), r.Node}) == nil {
				return
			}
			able = 1 // it may be near in a moment
		}
		left += able
	})
	return left
}
