package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// NodeReport is what a node says of itself.
type NodeReport struct {
	Version string      `json:"version,omitempty"`
	Started time.Time   `json:"started"`
	Disk    disk.Status `json:"disk"`
	// Problem is why data does not move there; empty while it does.
	Problem string `json:"problem,omitempty"`
	// Journals are the copies that the node has open, in the order of streams.
	Journals []CopyReport `json:"journals"`
	// More says that there are further ones.
	More bool `json:"more,omitempty"`
}

// CopyReport is what a node knows of its copy of a journal.
type CopyReport struct {
	metadata.StreamJournal
	Born uint64 `json:"born,omitempty"`
	// Term is raft's: the leader's epoch.
	Term  uint64 `json:"term"`
	Leads bool   `json:"leads,omitempty"`
	// Last is the copy's last entry, Position where it ends, in bytes since the journal began.
	Last     uint64 `json:"last"`
	Position uint64 `json:"position"`
	// Problem is why the copy takes nothing any more; Doubt why it has no vote for now.
	Problem string `json:"problem,omitempty"`
	Doubt   string `json:"doubt,omitempty"`
	// Followers are the other members of the group, as the leader sees them.
	Followers []FollowerReport `json:"followers,omitempty"`
}

// FollowerReport is another copy as the leader sees it.
type FollowerReport struct {
	Node  int32  `json:"node"`
	Born  uint64 `json:"born,omitempty"`
	Voter bool   `json:"voter,omitempty"`
	// Known says that it has answered this leader; only then the other fields hold.
	Known bool `json:"known,omitempty"`
	// Near says that it has nearly everything that the leader has.
	Near    bool   `json:"near,omitempty"`
	Entries uint64 `json:"entries_behind"`
	Bytes   uint64 `json:"bytes_behind"`
}

// reportsAtOnce is how many copies a report names at most: it has to fit into one answer.
const reportsAtOnce = 2000

// reportCall asks a node for its report, without the first copies of it.
type reportCall struct {
	Skip int `json:"skip,omitempty"`
}

// Report says how this node and its copies are.
func (n *Node) Report() NodeReport {
	r := NodeReport{Version: n.opts.Version, Started: n.started, Disk: n.Disk()}
	if err := n.Health(); err != nil {
		r.Problem = err.Error()
	}
	n.journals.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) {
		r.Journals = append(r.Journals, n.reportCopy(h, g))
	})
	n.journals.eachUnopened(func(_ string, h *journalHandle, err error) {
		r.Journals = append(r.Journals, CopyReport{StreamJournal: h.key(), Born: n.file.Get().Replicas[h.name], Problem: err.Error()})
	})
	return r
}

func (n *Node) reportCopy(h *journalHandle, g *raftgroup.Group) CopyReport {
	c := CopyReport{StreamJournal: h.key(), Term: g.Term(), Leads: g.Serves()}
	c.Last, c.Position = g.Journal().LogEnd()
	c.Doubt = g.Doubt()
	if n.trans != nil {
		c.Born = n.file.Get().Replicas[h.name]
	}
	for _, err := range []error{g.Err(), g.Journal().Err()} {
		if err != nil && !errors.Is(err, storage.ErrClosed) && c.Problem == "" {
			c.Problem = err.Error()
		}
	}
	if !c.Leads || n.trans == nil {
		return c
	}
	for _, s := range g.Servers() {
		if id := metadata.NodeAt(s.Address); id != n.id {
			c.Followers = append(c.Followers, reportFollower(g, s, c.Last, c.Position))
		}
	}
	return c
}

// reportFollower says how far a member is behind its leader, whose log ends at last.
func reportFollower(g *raftgroup.Group, s raft.Server, last, position uint64) FollowerReport {
	f := FollowerReport{Node: metadata.NodeAt(s.Address), Born: metadata.BornOf(s.ID), Voter: s.Suffrage == raft.Voter}
	acked, ok := g.Acked(s.ID)
	if !ok {
		return f
	}
	f.Known, f.Near = true, acked+raftgroup.NearEntries >= last
	f.Entries = last - min(acked, last)
	f.Bytes = position - min(g.Journal().PositionOf(acked), position)
	return f
}

// answerReport answers another node that wants this one's report.
func (n *Node) answerReport(body []byte) (NodeReport, error) {
	var c reportCall
	if err := json.Unmarshal(body, &c); err != nil {
		return NodeReport{}, err
	}
	r := n.Report()
	r.Journals = r.Journals[min(max(c.Skip, 0), len(r.Journals)):]
	if len(r.Journals) > reportsAtOnce {
		r.Journals, r.More = r.Journals[:reportsAtOnce], true
	}
	return r, nil
}

// reportOf asks a node for its report.
func (n *Node) reportOf(ctx context.Context, id int32) (NodeReport, error) {
	if id == n.id {
		return n.Report(), nil
	}
	var all NodeReport
	for {
		var part NodeReport
		if err := n.askNode(ctx, id, callReport, reportCall{len(all.Journals)}, &part); err != nil {
			return NodeReport{}, err
		}
		part.Journals = slices.Concat(all.Journals, part.Journals)
		if all = part; !all.More {
			return all, nil
		}
	}
}
