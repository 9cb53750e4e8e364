package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/status"
	"github.com/daybook-data/daybook/storage"
)

// reportsAtOnce is how many copies a report names at most: it has to fit into one answer.
const reportsAtOnce = 2000

// reportCall asks a node for its report, without the first copies of it.
type reportCall struct {
	Skip int `json:"skip,omitempty"`
}

// Report says how this node and its copies are.
func (n *Node) Report() status.Report {
	r := status.Report{Version: n.opts.Version, Started: n.started, Disk: n.Disk()}
	if err := n.Health(); err != nil {
		r.Problem = err.Error()
	}
	n.journals.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) {
		r.Journals = append(r.Journals, n.reportCopy(h, g))
	})
	n.journals.eachUnopened(func(_ string, h *journalHandle, err error) {
		r.Journals = append(r.Journals, status.Copy{StreamJournal: h.key(), Born: n.file.Get().Replicas[h.name], Problem: err.Error()})
	})
	return r
}

func (n *Node) reportCopy(h *journalHandle, g *raftgroup.Group) status.Copy {
	c := status.Copy{StreamJournal: h.key(), Term: g.Term(), Leads: g.Serves()}
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
func reportFollower(g *raftgroup.Group, s raft.Server, last, position uint64) status.Follower {
	f := status.Follower{Node: metadata.NodeAt(s.Address), Born: metadata.BornOf(s.ID), Voter: s.Suffrage == raft.Voter}
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
func (n *Node) answerReport(body []byte) (status.Report, error) {
	var c reportCall
	if err := json.Unmarshal(body, &c); err != nil {
		return status.Report{}, err
	}
	r := n.Report()
	r.Journals = r.Journals[min(max(c.Skip, 0), len(r.Journals)):]
	if len(r.Journals) > reportsAtOnce {
		r.Journals, r.More = r.Journals[:reportsAtOnce], true
	}
	return r, nil
}

// reportOf asks a node for its report.
func (n *Node) reportOf(ctx context.Context, id int32) (status.Report, error) {
	if id == n.id {
		return n.Report(), nil
	}
	var all status.Report
	for {
		var part status.Report
		if err := n.askNode(ctx, id, callReport, reportCall{len(all.Journals)}, &part); err != nil {
			return status.Report{}, err
		}
		part.Journals = slices.Concat(all.Journals, part.Journals)
		if all = part; !all.More {
			return all, nil
		}
	}
}
