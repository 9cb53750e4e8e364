package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/observer"
	"github.com/hashicorp/raft"
)

// askPatience is how long Status waits for the metadata's leader, and then for the reports of the other nodes.
const askPatience = 3 * time.Second

// ClusterStatus is the state of the cluster as a node sees it.
type ClusterStatus struct {
	ClusterID string `json:"cluster_id"`
	// Node is the one that was asked.
	Node int32 `json:"node"`
	// Stale is why the list of nodes and journals may be old: no leader of the metadata was reached. Empty: it is not.
	Stale string `json:"stale,omitempty"`
	// Controller leads the metadata; -1 if nobody is known to.
	Controller int32 `json:"controller"`
	// Voters are the nodes that elect it.
	Voters []int32 `json:"voters"`
	Counts Counts  `json:"counts"`

	Members  []MemberStatus  `json:"members"`
	Journals []JournalStatus `json:"journals"`
	// Waits says of journals on their way that get no further what they wait for.
	Waits []string `json:"waits,omitempty"`

	// Observer is how far the copies are of the observer that was asked, for which there are no journals above and no member
	// but itself; nil for nodes.
	Observer *observer.Status `json:"observer,omitempty"`
}

// Counts are what one looks at first. Journals are counted once in each.
type Counts struct {
	Nodes     int `json:"nodes"`
	NodesDown int `json:"nodes_down"`
	Journals  int `json:"journals"`
	// Leaderless have no leader that serves: nothing can be written to or read from them.
	Leaderless int `json:"leaderless"`
	// UnderReplicated have fewer copies that are in sync than they should have.
	UnderReplicated int `json:"under_replicated"`
	// Short are to have more copies than there are nodes.
	Short int `json:"short_of_nodes"`
	// Moving are on their way to other nodes.
	Moving int `json:"moving"`
	// NotPreferred are led by another node than the one that should lead them.
	NotPreferred int `json:"not_preferred"`
	// Problems are copies that take nothing any more, or have no vote, and nodes that say that data does not move.
	Problems int `json:"problems"`
}

// MemberStatus is a node and how it is.
type MemberStatus struct {
	metadata.Member
	Up bool `json:"up"`
	// Since is when it was started, or, while it is down, when it was heard of last; zero if never.
	Since   time.Time    `json:"since,omitzero"`
	Version string       `json:"version,omitempty"`
	Voter   bool         `json:"voter"`
	Leads   int          `json:"leads"`
	Copies  int          `json:"copies"`
	Disk    *disk.Status `json:"disk,omitempty"`
	Problem string       `json:"problem,omitempty"`
}

// Status returns the state of the cluster: the metadata's, and what every node that is up says of its copies. It answers
// also when the metadata has no leader, from what this node knows, and says so.
//
// An observer answers for itself alone: it knows neither how the nodes are nor who leads.
func (n *Node) Status(ctx context.Context) (ClusterStatus, error) {
	if n.observer != nil {
		return n.observerStatus(ctx), ctx.Err()
	}
	s := ClusterStatus{ClusterID: n.ClusterID(), Node: n.id, Controller: -1}
	wait, cancel := context.WithTimeout(ctx, askPatience)
	if err := n.SyncMeta(wait); err != nil {
		s.Stale = "no leader of the metadata answers: " + err.Error()
	} else {
		s.Controller = n.Controller()
	}
	cancel()
	if ctx.Err() != nil {
		return ClusterStatus{}, ctx.Err()
	}
	s.Voters = n.metaVoters()
	reports := n.reports(ctx)
	for _, m := range n.Members() {
		s.Members = append(s.Members, n.memberStatus(m, reports[m.ID], slices.Contains(s.Voters, m.ID)))
	}
	for _, stream := range n.meta.Streams() {
		for j := range stream.Journals {
			s.Journals = append(s.Journals, n.journalStatus(stream, j, reports))
			if why := n.moves.WaitsFor(stream, j); why != "" {
				s.Waits = append(s.Waits, why)
			}
		}
	}
	s.count()
	return s, ctx.Err()
}

// metaVoters are the nodes that elect the metadata's leader, by their ids.
func (n *Node) metaVoters() (ids []int32) {
	for _, server := range n.metaGroup.Servers() {
		if server.Suffrage == raft.Voter {
			ids = append(ids, metadata.NodeAt(server.Address))
		}
	}
	slices.Sort(ids)
	return ids
}

// nodeReports are the reports that nodes gave, by node; of one that gave none the error says why.
type nodeReports map[int32]*nodeAnswer

type nodeAnswer struct {
	NodeReport
	err    error
	copies map[metadata.StreamJournal]*CopyReport
}

// reports asks all nodes that are up.
func (n *Node) reports(ctx context.Context) nodeReports {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	all := nodeReports{}
	var asking sync.WaitGroup
	for _, m := range n.Members() {
		a := &nodeAnswer{copies: map[metadata.StreamJournal]*CopyReport{}}
		all[m.ID] = a
		if !n.Up(m.ID) {
			a.err = metadata.ErrUnknownMember
			continue
		}
		asking.Go(func() {
			a.NodeReport, a.err = n.reportOf(ctx, m.ID)
			for i := range a.Journals {
				a.copies[a.Journals[i].StreamJournal] = &a.Journals[i]
			}
		})
	}
	asking.Wait()
	return all
}

func (n *Node) memberStatus(m metadata.Member, a *nodeAnswer, voter bool) MemberStatus {
	s := MemberStatus{Member: m, Up: n.Up(m.ID), Voter: voter}
	switch {
	case !s.Up:
		p := n.trans.Stats().Peers[metadata.NodeName(m.ID)]
		if s.Since = p.Heard; p.Serves && p.Err != nil {
			s.Problem = fmt.Sprintf("it reaches node %d, which does not reach it at %s: %v", n.id, p.Address, p.Err)
		}
	case a.err != nil:
		s.Problem = "it does not say how it is: " + a.err.Error()
	default:
		s.Since, s.Version, s.Disk, s.Problem, s.Copies = a.Started, a.Version, &a.Disk, a.Problem, len(a.Journals)
		for _, c := range a.Journals {
			if c.Leads {
				s.Leads++
			}
		}
	}
	if s.Problem == "" {
		s.Problem = n.twinOf(m.ID)
	}
	return s
}

// count fills in the counts.
func (s *ClusterStatus) count() {
	c := &s.Counts
	c.Nodes, c.Journals = len(s.Members), len(s.Journals)
	for _, m := range s.Members {
		if !m.Up {
			c.NodesDown++
		}
		if m.Problem != "" {
			c.Problems++
		}
	}
	for _, j := range s.Journals {
		if j.Leader < 0 {
			c.Leaderless++
		} else if j.Leader != j.Preferred {
			c.NotPreferred++
		}
		if j.InSync < j.Wanted {
			c.UnderReplicated++
		}
		if j.Asked > j.Wanted {
			c.Short++
		}
		if j.Moving {
			c.Moving++
		}
		for _, r := range j.Replicas {
			if r.Problem != "" || r.Doubt != "" {
				c.Problems++
			}
		}
	}
}
