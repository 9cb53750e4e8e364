package cluster_test

import (
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
)

// A stream of which nobody says how many copies it is to have gets the usual number as nodes join, and one that was asked to
// have fewer stays as it is.
func TestAStreamGrowsWithItsCluster(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 1)
	for name, copies := range map[string]int32{"s": 0, "one": 1} {
		_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: name, Replication: copies})
		must(t, err)
	}
	copies := func(of map[string][2]int) func() bool { // placed and in sync, and asked for
		return func() bool {
			got, err := c.Node(0).Status(t.Context())
			if err != nil || len(got.Journals) != len(of) {
				return false
			}
			for _, j := range got.Journals {
				want := of[j.Stream]
				if len(j.Replicas) != want[0] || j.InSync != want[0] || j.Wanted != want[0] || j.Asked != want[1] || j.Moving {
					return false
				}
			}
			return true
		}
	}
	c.Until("one copy of each", copies(map[string][2]int{"s": {1, 3}, "one": {1, 1}}))
	acked := fill(c, "s", "a", 10)
	for n := 2; n <= 3; n++ {
		c.Add()
		c.Until("a copy on each node", copies(map[string][2]int{"s": {n, 3}, "one": {1, 1}}))
	}
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
	c.Add()
	c.Until("three copies", copies(map[string][2]int{"s": {3, 3}, "one": {1, 1}}))
}

// A stream that lost a copy with a node gets it back by itself once there is a node for it, and not when it was asked to have
// fewer.
func TestAStreamGetsItsCopiesBack(t *testing.T) {
	t.Parallel()
	racks := []string{"x", "y", "z", "z"}
	c, s := replicated(t, 3, "s", func(o *cluster.Options) {
		o.Network.Rack, racks = racks[0], racks[1:]
	})
	acked := fill(c, "s", "a", 10)
	id := c.Node(2).ID()
	must(t, takeOut(t.Context(), c.Node(0), moves.Removal{Node: id, Fewer: true}))
	c.Stop(2)
	c.Until("two copies in sync of the three that are asked for", func() bool {
		got, err := c.Node(0).Status(t.Context())
		if err != nil || len(got.Journals) != 1 {
			return false
		}
		j := got.Journals[0]
		return j.Asked == 3 && j.Wanted == 2 && j.InSync == 2 && got.Counts.Short == 1 && got.Counts.UnderReplicated == 0
	})
	c.Add()
	inSync := func(n int) func() bool {
		return func() bool {
			got, err := c.Node(0).Status(t.Context())
			if err != nil || len(got.Journals) != 1 {
				return false
			}
			j := got.Journals[0]
			return j.InSync == n && len(j.Replicas) == n && j.Asked == n && !j.Moving && got.Counts.Short == 0
		}
	}
	c.Until("three copies", inSync(3))
	for i := range 4 {
		if i == 2 {
			continue
		}
		if now, ok := c.Node(i).Meta().StreamByID(s.ID); ok && now.Uses(c.Node(i).ID()) {
			wantReplica(t, c, i, "s", acked)
		}
	}
	for {
		p, err := c.Node(0).Moves().Resize(t.Context(), "s", 2, false)
		must(t, err)
		if p.Done {
			break
		}
	}
	c.Until("two copies", inSync(2))
	must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, []int32{1, 2}))
	c.Until("two copies where they were asked for", inSync(2))
}
