package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
)

const (
	// mostVoters is how many nodes vote in the metadata group at most; the others follow it.
	mostVoters = 5
	// controlEvery is how often the controller looks for what has to be done if nothing tells it.
	controlEvery = time.Second
	// changeWithin bounds one change of a group's members.
	changeWithin = 10 * time.Second
	// missedAfter is how many timeouts a voter has to be away before another node votes in its place. Until then one more
	// that goes can stop the metadata; a voter that only restarts may find itself without a vote, which costs nothing.
	missedAfter = 3
)

// control does, while this node leads the metadata, what the cluster needs of one: the members of the metadata group
// follow the nodes, and nodes that are being taken out are emptied.
func (n *Node) control() {
	seen := sightings{}
	for {
		changed := n.meta.Changed()
		peers := n.trans.Stats().Peers
		n.askAround()
		n.lookForRefusals(peers)
		n.lookForDoubles(peers)
		n.lookWhoReaches(peers)
		seen.note(n) // whoever leads: a leader that takes over from one that died knows since when
		if _, ok := n.Coordinator(); ok {
			n.stepDownIfLeaving()
			for n.tendMetaGroup(seen) {
			}
			n.moves.Refill(n.ctx)
		}
		select {
		case <-changed:
		case <-n.CoordinatorChanged():
		case <-time.After(controlEvery):
		case <-n.ctx.Done():
			return
		}
	}
}

// sightings are when nodes were up last, as far as this node has looked.
type sightings map[int32]time.Time

func (s sightings) note(n *Node) {
	now := time.Now()
	for _, m := range n.meta.Members() {
		if _, ok := s[m.ID]; !ok || n.Up(m.ID) {
			s[m.ID] = now
		}
	}
}

// tendMetaGroup brings the metadata group one step nearer to what it is to be: every node is in it, the largest odd
// number up to five of them vote.
func (n *Node) tendMetaGroup(seen sightings) (again bool) {
	members := n.meta.Members()
	servers := n.metaGroup.Servers()
	var err error
	missed := func(id int32) bool { return time.Since(seen[id]) > missedAfter*n.opts.timeout() }
	switch step := planMeta(n.id, members, servers, missed); step.what {
	case stepNone:
		return false
	case stepAdd:
		err = n.metaGroup.AddNonvoter(metadata.NodeName(step.node), metadata.NodeName(step.node), changeWithin)
	case stepPromote:
		if !n.metaGroup.Near(raft.ServerID(metadata.NodeName(step.node))) {
			return false
		}
		err = n.metaGroup.AddVoter(metadata.NodeName(step.node), metadata.NodeName(step.node), changeWithin)
	case stepDemote:
		err = n.metaGroup.DemoteVoter(metadata.NodeName(step.node), changeWithin)
	case stepRemove:
		err = n.metaGroup.RemoveMember(metadata.NodeName(step.node), changeWithin)
	}
	if err != nil && n.ctx.Err() == nil {
		n.logger.Warn("the members of the metadata group could not be changed; trying again", "error", err)
	}
	return err == nil
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

// stepDownIfLeaving hands the metadata over where this node is being taken out, or was: a leader does not take itself out
// of the group.
func (n *Node) stepDownIfLeaving() {
	if m, ok := n.meta.Member(n.id); (!ok || m.Leaving) && n.hasHeir() && len(n.meta.Members()) > 0 {
		_ = n.metaGroup.HandOver(n.isHeir) // tried again in the next round
	}
}

type metaStep struct {
	what int
	node int32
}

const (
	stepNone = iota
	stepAdd
	stepPromote
	stepDemote
	stepRemove
)

// planMeta decides the next step. Voters that are there stay, unless they are away for long while another node could vote.
func planMeta(self int32, members []metadata.Member, servers []raft.Server, missed func(int32) bool) metaStep {
	in := map[int32]raft.ServerSuffrage{}
	for _, s := range servers {
		in[metadata.NodeAt(s.Address)] = s.Suffrage
	}
	var wanted []int32
	for _, m := range members {
		if _, ok := in[m.ID]; !ok && !m.Leaving {
			return metaStep{stepAdd, m.ID}
		}
		if !m.Leaving {
			wanted = append(wanted, m.ID)
		}
	}
	rank := func(id int32) int {
		suffrage, ok := in[id]
		switch {
		case id == self:
			return 0
		case missed(id):
			return 3
		case ok && suffrage == raft.Voter:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(wanted, func(a, b int32) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	n := min(len(wanted), mostVoters)
	n -= 1 - n%2
	voters := wanted[:max(n, 0)]
	for _, id := range voters {
		if in[id] != raft.Voter {
			return metaStep{stepPromote, id}
		}
	}
	for _, s := range servers {
		id := metadata.NodeAt(s.Address)
		if s.Suffrage == raft.Voter && !slices.Contains(voters, id) && id != self {
			return metaStep{stepDemote, id}
		}
		if !slices.ContainsFunc(members, func(m metadata.Member) bool { return m.ID == id }) && id != self {
			return metaStep{stepRemove, id}
		}
	}
	return metaStep{}
}
