package cluster_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/internal/cable"
)

// Whoever starts all nodes of a new cluster at once gives each the addresses of all others, most of which are joining too
// and answer nobody yet.
func TestANodeJoinsPastThoseThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 1)
	net := &cluster.Network{Timeout: time.Second}
	for range 5 {
		silent := cable.Listen(t, "127.0.0.1:0") // nobody accepts
		defer silent.Close()
		net.Join = append(net.Join, silent.Addr().String())
	}
	net.Join = append(net.Join, c.Address(0))
	i := c.AddWith(cluster.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, Network: net})
	if got := len(c.Node(i).Members()); got != 2 {
		t.Errorf("the node that joined knows %d members", got)
	}
}

// Who comes with the address of a node that is up is told so at once, and let in when that node is dead: another machine
// takes its place.
func TestNobodyJoinsWithTheAddressOfANodeThatIsUp(t *testing.T) {
	t.Parallel()
	c, log := clustertest.Start(t, 3), &lines{}
	network := &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0"), Advertise: c.Address(2), Join: []string{c.Address(0)}}
	opened := make(chan *cluster.Node, 1)
	go func() {
		n, err := cluster.Open(cluster.Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil)), Network: network})
		if err != nil {
			t.Error(err)
		}
		opened <- n
	}()
	c.Until("the refusal to be told", func() bool { return strings.Contains(log.String(), "is the address of node 3, which is up") })
	if got := len(c.Node(0).Members()); got != 3 {
		t.Errorf("there are %d members", got)
	}
	c.Stop(2)
	defer cable.Listen(t, c.Address(2)).Close() // the other machine is there
	if n := <-opened; n != nil {
		if n.ID() != 4 {
			t.Errorf("the node that took the place of node 3 is node %d", n.ID())
		}
		must(t, n.Close())
	}
}

// A node that asks to be let in where no node answers says so once, and can be stopped at any time. Its own address is
// nobody to ask.
func TestWaitingToBeLetInIsSaidOnceAndCanBeEnded(t *testing.T) {
	t.Parallel()
	busy := cable.Listen(t, "127.0.0.1:0") // a server of another kind
	defer busy.Close()
	asked := make(chan struct{}, 1000)
	go func() {
		for {
			conn, err := busy.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")); err != nil {
				t.Error(err)
			}
			asked <- struct{}{}
		}
	}()
	log, abandon, dir := &lines{}, make(chan struct{}), t.TempDir()
	own := cable.Listen(t, "127.0.0.1:0")
	network := &cluster.Network{Timeout: time.Second, Listener: own, Join: []string{own.Addr().String(), busy.Addr().String()}, Abandon: abandon}
	ended := make(chan error, 1)
	go func() {
		n, err := cluster.Open(cluster.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, nil)), Network: network})
		if err == nil {
			err = errors.Join(errors.New("it opened"), n.Close())
		}
		ended <- err
	}()
	for range 4 { // one every 200 ms
		<-asked
	}
	close(abandon)
	if err := <-ended; !errors.Is(err, cluster.ErrAbandoned) || !strings.Contains(err.Error(), "does not answer as a node") {
		t.Errorf("it ended with %v", err)
	}
	if said := log.String(); strings.Count(said, "did not let this one in") != 1 {
		t.Errorf("it said\n%s", said)
	}
	network = &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0")}
	network.Join = []string{network.Listener.Addr().String()}
	if _, err := cluster.Open(cluster.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Network: network}); err == nil || !strings.Contains(err.Error(), "own address") {
		t.Errorf("joining itself: %v", err)
	}
}
