package cluster_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// Nobody waits for a timeout until the first leader of a new cluster, or of a new stream, is elected: where raft's timers
// are far longer than the test's patience, there are leaders nevertheless.
func TestNewGroupsHaveALeaderAtOnce(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3, func(o *cluster.Options) { o.Network.Timeout = 2 * time.Minute })
	untilVoters(t, c, 3)
	for _, name := range []string{"s", "t"} {
		_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: name, Partitions: 2})
		must(t, err)
		fill(c, name, "v", 3)
	}
	if leader := c.Leader("s", 0); leader != 0 {
		t.Errorf("stream s is led by node %d, the first of its nodes is 0", leader)
	}
}
