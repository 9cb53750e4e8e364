package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/status"
)

// askPatience is how long Status waits for the metadata's leader, and then for the reports of the other nodes.
const askPatience = 3 * time.Second

// Status returns the state of the cluster: the metadata's, and what every node that is up says of its copies. It answers
// also when the metadata has no leader, from what this node knows, and says so.
//
// An observer answers for itself alone: it knows neither how the nodes are nor who leads.
func (n *Node) Status(ctx context.Context) (status.Cluster, error) {
	v := status.View{ClusterID: n.ClusterID(), Node: n.id, Controller: -1, Up: n.Up, Waits: n.moves.WaitsFor}
	if n.observer != nil {
		n.observerView(ctx, &v)
		v.Link = n.links()
		return status.Of(v), ctx.Err()
	}
	wait, cancel := context.WithTimeout(ctx, askPatience)
	if err := n.SyncMeta(wait); err != nil {
		v.Stale = "no leader of the metadata answers: " + err.Error()
	} else {
		v.Controller = n.Controller()
	}
	cancel()
	if ctx.Err() != nil {
		return status.Cluster{}, ctx.Err()
	}
	v.Voters, v.Members = n.metaVoters(), n.Members()
	v.Answers = n.reports(ctx, v.Members)
	v.Streams, v.Link = n.meta.Streams(), n.links()
	return status.Of(v), ctx.Err()
}

// observerView is what Status says of an observer.
func (n *Node) observerView(ctx context.Context, v *status.View) {
	o := n.observer.Status()
	a := &status.Answer{}
	a.Report, a.Err = n.reportOf(ctx, n.id)
	if err := n.observer.Ready(); err != nil {
		a.Problem = strings.TrimPrefix(a.Problem+"; "+err.Error(), "; ")
	}
	v.Members, v.Answers, v.Observer = n.Members(), map[int32]*status.Answer{n.id: a}, &o
}

// links says what the connections with a node tell of it now.
func (n *Node) links() func(metadata.Member) status.Link {
	if n.trans == nil {
		return func(metadata.Member) status.Link { return status.Link{} }
	}
	peers := n.trans.Stats().Peers
	return func(m metadata.Member) status.Link {
		p := peers[metadata.NodeName(m.ID)]
		l := status.Link{Heard: p.Heard, Twin: n.twinOf(m.ID)}
		if p.Serves && p.Err != nil {
			l.OneWay = fmt.Sprintf("it reaches node %d, which does not reach it at %s: %v", n.id, p.Address, p.Err)
		}
		return l
	}
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

// reports asks all members that are up.
func (n *Node) reports(ctx context.Context, members []metadata.Member) map[int32]*status.Answer {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	all := map[int32]*status.Answer{}
	var asking sync.WaitGroup
	for _, m := range members {
		a := &status.Answer{}
		all[m.ID] = a
		if !n.Up(m.ID) {
			a.Err = metadata.ErrUnknownMember
			continue
		}
		asking.Go(func() { a.Report, a.Err = n.reportOf(ctx, m.ID) })
	}
	asking.Wait()
	return all
}
