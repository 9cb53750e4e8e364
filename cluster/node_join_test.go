package cluster_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
)

// Whoever starts all nodes of a new cluster at once gives each the addresses of all others, most of which are joining too
// and answer nobody yet.
func TestANodeJoinsPastThoseThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 1)
	net := &cluster.Network{Timeout: time.Second}
	for range 5 {
		silent := listen(t, "127.0.0.1:0") // nobody accepts
		defer silent.Close()
		net.Join = append(net.Join, silent.Addr().String())
	}
	net.Join = append(net.Join, c.Address(0))
	i := c.AddWith(cluster.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, Network: net})
	if got := len(c.Node(i).Members()); got != 2 {
		t.Errorf("the node that joined knows %d members", got)
	}
}
