package cluster_test

import (
	"slices"
	"testing"

	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
)

func TestALeadIsHandedOver(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	acked := fill(c, "s", "a", 5)
	leader := c.Leader("s", 0)
	to := c.Node((leader + 1) % 3).ID()
	c.Until("the lead to be handed over", func() bool {
		if err := c.Node((leader+2)%3).Transfer(t.Context(), s.ID, 0, to); err != nil {
			return false // not all is there yet, or the leader is not known
		}
		return c.Node(c.Leader("s", 0)).ID() == to
	})
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
}

// A node is taken out while its journals are used, and one that is gone for good too.
func TestANodeIsTakenOut(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 4)
	untilVoters(t, c, 3)
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s", Replication: 3})
	must(t, err)
	acked := fill(c, "s", "a", 10)
	gone := c.Leader("s", 0)
	id := c.Node(gone).ID()
	c.Stop(gone)
	must(t, takeOut(t.Context(), c.Nodes()[0], moves.Removal{Node: id}))
	for offset, value := range fill(c, "s", "b", 10) {
		acked[offset] = value
	}
	for i := range 4 {
		if i == gone {
			continue
		}
		wantReplica(t, c, i, "s", acked)
		p, err := c.Node(i).Partition("s", 0)
		must(t, err)
		if slices.Contains(p.Replicas(), id) || len(p.Replicas()) != 3 || len(c.Node(i).Members()) != 3 {
			t.Errorf("node %d: replicas %v, members %v", i, p.Replicas(), c.Node(i).Members())
		}
	}
}
