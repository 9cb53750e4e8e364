package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/cluster/status"
	"github.com/daybook-data/daybook/internal/cable"
)

func statusOf(t *testing.T, n *cluster.Node) status.Cluster {
	t.Helper()
	s, err := n.Status(t.Context())
	must(t, err)
	return s
}

// quiet waits until a cluster has nothing that is worth a look.
func quiet(t *testing.T, c *clustertest.Cluster) status.Cluster {
	t.Helper()
	var s status.Cluster
	defer func() {
		if t.Failed() {
			t.Logf("the cluster is %+v", s)
		}
	}()
	c.Until("a cluster in order", func() bool {
		s = statusOf(t, c.Nodes()[0])
		bad := s.Counts
		bad.Nodes, bad.Journals, bad.NotPreferred = 0, 0, 0
		return s.Stale == "" && bad == status.Counts{}
	})
	return s
}

func TestStatusSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", func(o *cluster.Options) { o.Version = "v1" })
	fill(c, "s", "a", 5)
	all := quiet(t, c)
	if len(all.Journals) != 1 || all.Counts.Nodes != 3 || all.Journals[0].InSync != 3 || all.Journals[0].StreamID != s.ID {
		t.Fatalf("of three nodes in order it says %+v", all)
	}
	for _, m := range all.Members {
		if !m.Up || m.Version != "v1" || m.Copies != 1 || m.Since.IsZero() || m.Disk == nil || !m.Voter {
			t.Errorf("of a node that is up it says %+v", m)
		}
	}
	dead := (c.Leader("s", 0) + 1) % 3
	id := c.Node(dead).ID()
	c.Stop(dead)
	fill(c, "s", "b", 100)
	c.Until("the dead node to show", func() bool {
		all = statusOf(t, c.Nodes()[0])
		return all.Counts.NodesDown == 1 && all.Counts.UnderReplicated == 1 && all.Counts.Leaderless == 0
	})
	i := slices.IndexFunc(all.Journals[0].Replicas, func(r status.Replica) bool { return r.Node == id })
	if r := all.Journals[0].Replicas[i]; r.State != status.Down {
		t.Errorf("of the dead node's copy it says %+v", r)
	}
	c.Until("the nodes to count it too", func() bool {
		var led, lacking int
		for _, n := range c.Nodes() {
			f := n.Figures()
			if f.Nodes != 3 || f.NodesDown != 1 || f.Leaderless != 0 || f.Copies != 1 {
				return false
			}
			led, lacking = led+f.Led, lacking+f.UnderReplicated
		}
		return led == 1 && lacking == 1
	})
	c.Restart(dead)
	quiet(t, c)
}

// With no majority it still answers, and says that it may be out of date.
func TestStatusAnswersWithoutAMajority(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	quiet(t, c)
	c.Stop(0)
	c.Stop(1)
	c.Until("the journal to have no leader", func() bool {
		s := statusOf(t, c.Node(2))
		return s.Stale != "" && s.Counts.Leaderless == 1 && s.Counts.NodesDown == 2 && s.Controller == -1
	})
}

// Nodes that come get their share of the replicas, a few journals at a time, and nothing is lost meanwhile.
func TestLoadIsSpreadOverNewNodes(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	acked := map[string]map[int64]string{}
	for i := range 6 {
		name := fmt.Sprint("s", i)
		_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: name, Replication: 2})
		must(t, err)
		acked[name] = fill(c, name, "a", 5)
	}
	c.Add()
	quiet(t, c)
	c.Until("the load to be spread", func() bool {
		p, err := c.Node(0).Moves().Rebalance(t.Context(), false)
		must(t, err)
		copies := slices.ContainsFunc(p.Begun, func(m moves.Move) bool {
			return slices.ContainsFunc(m.To, func(n int32) bool { return !slices.Contains(m.From, n) })
		})
		if copies && p.Moving > 4 { // copies that fell behind where they are count too, but begin nothing
			t.Errorf("a journal was set on its way as the %dth at a time", p.Moving)
		}
		return p.Done
	})
	quiet(t, c)
	c.Until("each node to have its share", func() bool { // old copies go a moment after they ceased to count
		return !slices.ContainsFunc(statusOf(t, c.Node(0)).Members, func(m status.Member) bool { return m.Copies != 3 })
	})
	for name := range acked {
		for offset, value := range fill(c, name, "b", 5) {
			acked[name][offset] = value
		}
		wantReplica(t, c, c.Leader(name, 0), name, acked[name])
	}
	c.Stop(3)
	c.Until("a node that is down to keep it from moving", func() bool {
		_, err := c.Node(0).Moves().Rebalance(t.Context(), false)
		return errors.Is(err, moves.ErrMembersDown)
	})
}

func TestAStreamGetsMoreReplicasAndFewer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s", Replication: 1})
	must(t, err)
	acked := fill(c, "s", "a", 5)
	for _, count := range []int{3, 1, 2} {
		c.Until(fmt.Sprint(count, " replicas"), func() bool {
			p, err := c.Node(0).Moves().Resize(t.Context(), "s", count, false)
			must(t, err)
			return p.Done
		})
		if s := quiet(t, c); s.Journals[0].Wanted != count || s.Journals[0].InSync != count {
			t.Errorf("asked for %d it has %+v", count, s.Journals[0])
		}
		for offset, value := range fill(c, "s", fmt.Sprint(count), 5) {
			acked[offset] = value
		}
		wantReplica(t, c, c.Leader("s", 0), "s", acked)
	}
	if _, err := c.Node(0).Moves().Resize(t.Context(), "s", 4, false); !errors.Is(err, metadata.ErrInvalidReplication) {
		t.Errorf("four replicas on three nodes: %v", err)
	}
}

// A node that has to go is not taken out where its journals have nowhere to go, unless somebody agrees to fewer replicas.
func TestRemovalNeedsAPlaceForTheReplicas(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	if _, err := c.Node(0).Moves().Remove(t.Context(), moves.Removal{Node: 3}); !errors.Is(err, metadata.ErrMemberInUse) {
		t.Fatalf("with no other node: %v", err)
	}
	if s := statusOf(t, c.Node(0)); s.Members[2].Leaving {
		t.Error("after it was refused the node is to go all the same")
	}
	must(t, takeOut(t.Context(), c.Node(0), moves.Removal{Node: 3, Undo: true}))
	if s := statusOf(t, c.Node(0)); s.Members[2].Leaving {
		t.Error("after it was undone the node still is to go")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, takeOut(ctx, c.Node(0), moves.Removal{Node: 3, Fewer: true}))
	c.Until("two replicas", func() bool {
		s := statusOf(t, c.Node(0))
		return len(s.Members) == 2 && s.Journals[0].Wanted == 2 && s.Journals[0].InSync == 2 && !s.Journals[0].Moving
	})
}

// A dead node that has half of a journal's copies is not taken out: the journal could never move.
func TestRemovalNeedsMostCopiesOfAJournal(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "pair", Replication: 2})
	must(t, err)
	c.Add()
	untilVoters(t, c, 3)
	s, ok := c.Node(0).Meta().Stream("pair")
	if !ok {
		t.Fatal("the stream is not there")
	}
	dead := metadata.NodesOf(s.ReplicasOf(0))[1]
	place := c.Place(dead)
	c.Stop(place)
	ask := c.Nodes()[0]
	c.Until("the node to be down", func() bool { return !ask.Up(dead) })
	if _, err := ask.Moves().Remove(t.Context(), moves.Removal{Node: dead}); !errors.Is(err, moves.ErrMembersDown) || !strings.Contains(err.Error(), "pair") {
		t.Fatalf("with half of a journal's copies dead: %v", err)
	}
	if slices.ContainsFunc(statusOf(t, ask).Members, func(m status.Member) bool { return m.Leaving }) {
		t.Error("after it was refused the node is to go all the same")
	}
	c.Restart(place)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.Until("the node to be up", func() bool { return ask.Up(dead) })
	must(t, takeOut(ctx, ask, moves.Removal{Node: dead}))
}

// A node that was taken out while it ran says so, and is refused when it is started again.
func TestARemovedNodeSaysSo(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	controller := c.Controller()
	for _, gone := range []int{controller, (controller + 1) % 3} { // who leads the metadata, and one that does not
		n := c.Node(gone)
		ask := c.Node((controller + 2) % 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(t, takeOut(ctx, ask, moves.Removal{Node: n.ID()}))
		if err := ask.SyncMeta(ctx); err != nil {
			t.Fatalf("the others do not go on without node %d: %v", n.ID(), err)
		}
		select {
		case <-n.Removed():
		case <-time.After(time.Minute):
			t.Fatalf("node %d does not learn that it was taken out", n.ID())
		}
		if err := n.Health(); !errors.Is(err, metadata.ErrRemoved) {
			t.Errorf("its health is %v", err)
		}
		c.Stop(gone)
		_, err := cluster.Open(cluster.Options{Dir: c.Dir(gone), Network: &cluster.Network{Listener: cable.Listen(t, "127.0.0.1:0")}})
		if !errors.Is(err, metadata.ErrRemoved) {
			t.Errorf("started again it says %v", err)
		}
	}
}

// So does one that was dead while it was taken out, and has heard nothing of it when it is started again.
func TestANodeThatWasTakenOutWhileItWasDeadSaysSo(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 4, "s")
	dead := (c.Controller() + 1) % 4
	id := c.Node(dead).ID()
	c.Stop(dead)
	must(t, takeOut(t.Context(), c.Nodes()[0], moves.Removal{Node: id}))
	n := c.Begin(dead)
	select {
	case <-n.Removed():
	case <-time.After(time.Minute):
		t.Fatal("it does not learn that it was taken out")
	}
}

// The first replica leads again after its node was away, without being told to.
func TestThePreferredLeaderLeadsAgain(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", func(o *cluster.Options) { o.Network.Timeout = 500 * time.Millisecond })
	p, err := c.Node(0).Partition("s", 0)
	must(t, err)
	first := c.Place(p.Replicas()[0])
	c.Until("the preferred leader", func() bool { return c.Leader("s", 0) == first })
	acked := fill(c, "s", "a", 5)
	c.Stop(first)
	for offset, value := range fill(c, "s", "b", 5) {
		acked[offset] = value
	}
	c.Restart(first)
	c.Until("the preferred leader to lead again", func() bool { return c.Leader("s", 0) == first })
	// And another one once it is the first.
	other := (first + 1) % 3
	c.Until("the other one to be the first", func() bool {
		_, err := c.Node(first).Prefer(t.Context(), s.ID, 0, c.Node(other).ID())
		return err == nil
	})
	c.Until("the other one to lead", func() bool { return c.Leader("s", 0) == other })
	wantReplica(t, c, other, "s", acked)
}

// A node that hands over leads nothing when it is done, and gets nothing back.
func TestANodeHandsOverWhatItLeads(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	for i := range 5 {
		_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: fmt.Sprint("s", i), Replication: 3})
		must(t, err)
		fill(c, fmt.Sprint("s", i), "a", 1)
	}
	quiet(t, c)
	for _, n := range c.Nodes() {
		c.Until("the node to lead nothing", func() bool { // on a slow machine the new leaders may lose an election yet
			n.HandOver(t.Context())
			_, leads := n.Coordinator()
			return n.Figures().Led == 0 && !leads
		})
		place := c.Place(n.ID())
		c.Stop(place)
		for i := range 5 {
			fill(c, fmt.Sprint("s", i), "b", 1)
		}
		c.Restart(place)
		quiet(t, c)
	}
}
