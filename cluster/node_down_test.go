package cluster_test

import (
	"testing"

	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// Streams are made while a node is down, with a replica on it, which it has when it comes back.
func TestStreamsAreMadeWhileANodeIsDown(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	down := 2
	id := c.Node(down).ID()
	c.Stop(down)
	c.Until("the others to notice", func() bool { return !c.Node(0).Up(id) })
	c.Until("a stream of three replicas", func() bool {
		s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s", Replication: 3})
		return err == nil && len(s.Placement[0]) == 3 && s.Placement[0][0].Node != id
	})
	acked := fill(c, "s", "a", 5)
	c.Restart(down)
	wantReplica(t, c, down, "s", acked)
}
