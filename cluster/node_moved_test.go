package cluster_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/internal/cable"
)

// knows waits until all nodes that run have the addresses of all in their metadata, and reach them there.
func knows(c *clustertest.Cluster, n int) {
	c.Until("all nodes to know all addresses", func() bool {
		for _, node := range c.Nodes() {
			for _, m := range node.Members() {
				if m.Address != c.Address(int(m.ID)-1) || !node.Up(m.ID) {
					return false
				}
			}
			if len(node.Members()) != n {
				return false
			}
		}
		return true
	})
}

// A node comes back at another address while the others keep their leader, which does not know it.
func TestANodeComesBackAtAnotherAddress(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	moves := (c.Controller() + 1) % 3
	c.Stop(moves)
	c.Move(moves)
	c.Restart(moves)
	knows(c, 3)
}

// All nodes move at once. One of their addresses, given at the next start, is enough for them to find each other.
func TestAllNodesComeBackAtOtherAddresses(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	for i := range 3 {
		c.Stop(i)
	}
	c.Move(0)
	c.Begin(0)
	c.Move(1, c.Address(0), "127.0.0.1:1")
	c.Move(2, c.Address(0))
	c.Begin(1)
	c.Begin(2)
	for i := range 3 {
		c.WaitReady(i)
	}
	knows(c, 3)
}

// unfit opens a node that cannot go on and waits until it says why.
func unfit(t *testing.T, c *clustertest.Cluster, o cluster.Options) string {
	t.Helper()
	n, err := cluster.Open(o)
	must(t, err)
	defer n.Close()
	c.Until("the node to end", func() bool {
		select {
		case <-n.Removed():
			return true
		default:
			return false
		}
	})
	return n.Health().Error()
}

// A copy of a node's folder that is started elsewhere is turned away and ends, and the node is not disturbed. Its folder
// can be started again: the node it is of may be gone by then.
func TestACopyOfARunningNodeEnds(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	c.Stop(2)
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(c.Dir(2))))
	c.Restart(2)
	knows(c, 3)
	o := cluster.Options{Dir: dir, SegmentBytes: 256 << 10, Network: &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0"), Join: []string{c.Address(0)}}}
	why := unfit(t, c, o)
	for _, want := range []string{"runs as another process", c.Address(2), dir} {
		if !strings.Contains(why, want) {
			t.Errorf("it says %q, without %q", why, want)
		}
	}
	knows(c, 3)
	c.Stop(2)
	o.Network.Listener = cable.Listen(t, "127.0.0.1:0")
	n, err := cluster.Open(o)
	must(t, err)
	defer n.Close()
	c.Until("the copy to take the place", func() bool {
		select {
		case <-n.Ready():
			return n.ID() == 3
		default:
			return false
		}
	})
}

// A folder that founded a cluster of its own and is started to join another one says so and ends, and so does not serve
// beside it.
func TestAFolderOfItsOwnClusterJoinsNoOther(t *testing.T) {
	t.Parallel()
	c, own := clustertest.Start(t, 2), clustertest.Start(t, 1)
	id, dir := own.Node(0).ClusterID(), own.Dir(0)
	own.Stop(0)
	o := cluster.Options{Dir: dir, SegmentBytes: 256 << 10, Network: &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0"), Join: []string{c.Address(0)}}}
	why := unfit(t, c, o)
	for _, want := range []string{dir, id, c.Node(0).ClusterID(), c.Address(0), "empty folder"} {
		if !strings.Contains(why, want) {
			t.Errorf("it says %q, without %q", why, want)
		}
	}
	own.Restart(0)
}

// A node that asks to join with an address that nobody reaches is told so, and let in once it is reached there.
func TestWhoJoinsIsReached(t *testing.T) {
	t.Parallel()
	c, log := clustertest.Start(t, 1), &lines{}
	nobody := cable.Listen(t, "127.0.0.7:0")
	must(t, nobody.Close())
	network := &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0"), Advertise: nobody.Addr().String(), Join: []string{c.Address(0)}}
	opened := make(chan *cluster.Node, 1)
	go func() {
		n, err := cluster.Open(cluster.Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil)), Network: network})
		if err != nil {
			t.Error(err)
		}
		opened <- n
	}()
	c.Until("the node to be told", func() bool { return strings.Contains(log.String(), "cannot reach "+network.Advertise) })
	if got := len(c.Node(0).Members()); got != 1 {
		t.Errorf("there are %d members", got)
	}
	defer cable.Listen(t, network.Advertise).Close()
	if n := <-opened; n != nil {
		must(t, n.Close())
	}
}

// A node that comes back with an address that nobody reaches says so itself, and is back with the right one.
func TestANodeThatIsNotReachedSaysSo(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 2)
	const wrong = "127.0.0.7:1"
	c.Stop(1)
	network := &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0"), Advertise: wrong}
	n, err := cluster.Open(cluster.Options{Dir: c.Dir(1), SegmentBytes: 256 << 10, Network: network})
	must(t, err)
	c.Until("the node to say it", func() bool {
		err := n.Health()
		return err != nil && strings.Contains(err.Error(), "no other node reaches this one at "+wrong)
	})
	must(t, n.Close())
	c.Restart(1)
	c.Until("the node to be in order with its right address", func() bool { return c.Node(1).Health() == nil && c.Node(0).Up(2) })
}
