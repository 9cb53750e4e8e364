package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// childDir, in the environment, makes the test binary a server of that directory,
// to be killed by the test that started it; childAddr is where it listens.
const (
	childDir  = "DAYBOOK_TEST_CHILD_DIR"
	childAddr = "DAYBOOK_TEST_CHILD_ADDR"
	// childPeer, if set, makes it one of several nodes, which reach it there; it joins the
	// cluster of the one at childJoin.
	childPeer = "DAYBOOK_TEST_CHILD_PEER"
	childJoin = "DAYBOOK_TEST_CHILD_JOIN"
)

const (
	// peerListener is the name under which the nodes of a test announce themselves.
	peerListener = "clients"
	// peerTimeout is after how long they take each other for dead.
	peerTimeout = time.Second
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := serveChild(dir, os.Getenv(childAddr)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveChild serves until it is killed.
func serveChild(dir, addr string) error {
	network, err := childNetwork()
	if err != nil {
		return err
	}
	node, err := cluster.Open(cluster.Options{Dir: dir, SegmentBytes: 256 << 10, Network: network})
	if err != nil {
		return err
	}
	<-node.Ready()
	if err := node.Announce(context.Background(), map[string]string{peerListener: addr}); err != nil {
		return err
	}
	server, err := kafka.New(kafka.Options{Node: node, AutoPartitions: 2})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	serving, end := context.WithCancel(context.Background())
	defer end()
	var handing sync.WaitGroup
	handing.Go(func() {
		<-asked.Done()
		node.HandOver(serving) // clients are served until then, and told of the new leaders
		end()
	})
	err = server.Serve(serving, l, kafka.Access{Name: peerListener})
	stop()
	handing.Wait()
	return errors.Join(err, server.Close(), node.Close())
}

func childNetwork() (*cluster.Network, error) {
	addr := os.Getenv(childPeer)
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	n := &cluster.Network{Listener: l, Timeout: peerTimeout}
	if join := os.Getenv(childJoin); join != "" {
		n.Join = []string{join}
	}
	return n, nil
}
