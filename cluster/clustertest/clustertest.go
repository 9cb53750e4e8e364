// Package clustertest starts several nodes of a cluster in one process, for tests: each with a directory of its own, over
// TCP on the loopback interface.
package clustertest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
)

// patience is how long a state is waited for.
const patience = 2 * time.Minute

// Cluster is some nodes. Its methods fail the test when something does not come about; they are called from the test's
// goroutine, except for Node and Nodes.
type Cluster struct {
	t      testing.TB
	change []func(*cluster.Options)

	mu    sync.Mutex
	nodes []*cluster.Node // nil: it is stopped. Guarded by mu
	opts  []cluster.Options
}

// Start starts n nodes of a new cluster and waits until all are ready. Every one's options go through change first. They
// are closed at the end of the test.
func Start(t testing.TB, n int, change ...func(*cluster.Options)) *Cluster {
	t.Helper()
	c := &Cluster{t: t, change: change}
	t.TempDir() // the test's directories are removed in the place of the first one: after the nodes are closed
	t.Cleanup(c.close)
	for range n {
		c.Add()
	}
	return c
}

func (c *Cluster) close() {
	var all sync.WaitGroup
	for _, n := range c.Nodes() {
		all.Go(func() { _ = n.Close() })
	}
	all.Wait()
}

// Add starts a node with an empty directory that joins the others, waits until it is ready, and returns its place.
func (c *Cluster) Add() int {
	c.t.Helper()
	o := cluster.Options{Dir: c.t.TempDir(), SegmentBytes: 256 << 10, Network: &cluster.Network{Timeout: time.Second}}
	for i := range c.opts {
		if c.Node(i) != nil {
			o.Network.Join = append(o.Network.Join, c.opts[i].Network.Advertise)
		}
	}
	for _, f := range c.change {
		f(&o)
	}
	return c.AddWith(o)
}

// Dir is the directory of a node.
func (c *Cluster) Dir(i int) string { return c.opts[i].Dir }

// Address is where a node listens for the others.
func (c *Cluster) Address(i int) string { return c.opts[i].Network.Advertise }

// AddStopped gives a node a place without starting it.
func (c *Cluster) AddStopped(o cluster.Options) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes, c.opts = append(c.nodes, nil), append(c.opts, o)
	return len(c.nodes) - 1
}

// AddWith is Add with the options given, without Listener.
func (c *Cluster) AddWith(o cluster.Options) int {
	c.t.Helper()
	i := c.AddStopped(o)
	c.Restart(i)
	return i
}

// Restart starts a node that was stopped, with its directory and address, and waits until it is ready.
func (c *Cluster) Restart(i int) *cluster.Node {
	c.t.Helper()
	n := c.Begin(i)
	c.WaitReady(i)
	return n
}

// Begin is Restart without waiting: nodes that need each other are begun one after the other.
func (c *Cluster) Begin(i int) *cluster.Node {
	c.t.Helper()
	o := c.opts[i]
	network := *o.Network
	o.Network = &network
	if network.Listener == nil {
		address := network.Advertise
		if address == "" {
			address = "127.0.0.1:0"
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			c.t.Fatalf("listening for node %d: %v", i, err)
		}
		network.Listener, network.Advertise = listener, listener.Addr().String()
		c.opts[i].Network.Advertise = network.Advertise
	}
	n, err := cluster.Open(o)
	if err != nil {
		c.t.Fatalf("opening node %d: %v", i, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = n
	return n
}

// Move has a node that is stopped listen at another address from its next start on, at which it is given addresses to join.
func (c *Cluster) Move(i int, join ...string) {
	network := *c.opts[i].Network
	network.Advertise, network.Join = "", join
	c.opts[i].Network = &network
}

// WaitReady waits until a node is ready.
func (c *Cluster) WaitReady(i int) {
	c.t.Helper()
	select {
	case <-c.Node(i).Ready():
	case <-time.After(patience):
		c.t.Fatalf("node %d is not ready after %v", i, patience)
	}
}

// Stop closes a node as its process would end: it hands nothing over.
func (c *Cluster) Stop(i int) {
	c.t.Helper()
	c.mu.Lock()
	n := c.nodes[i]
	c.nodes[i] = nil
	c.mu.Unlock()
	if err := n.Close(); err != nil {
		c.t.Fatalf("closing node %d: %v", i, err)
	}
}

// Node is the node at a place, nil while it is stopped.
func (c *Cluster) Node(i int) *cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// Nodes are those that run.
func (c *Cluster) Nodes() (all []*cluster.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// Place is where the node with an id is, -1 if it does not run.
func (c *Cluster) Place(id int32) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.nodes {
		if n != nil && n.ID() == id {
			return i
		}
	}
	return -1
}

// Until waits for a state.
func (c *Cluster) Until(what string, reached func() bool) {
	c.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !reached(); <-tick.C {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Controller waits until the running nodes agree who leads the metadata, and returns its place.
func (c *Cluster) Controller() int {
	c.t.Helper()
	place := -1
	c.Until("a controller", func() bool {
		for _, n := range c.Nodes() {
			if _, ok := n.Coordinator(); ok {
				place = c.Place(n.ID())
			}
		}
		return place >= 0
	})
	return place
}

// Leader waits until a running node leads a partition, and returns its place.
func (c *Cluster) Leader(stream string, partition int32) int {
	c.t.Helper()
	place := -1
	c.Until("a leader of "+stream, func() bool {
		for _, n := range c.Nodes() {
			p, err := n.Partition(stream, partition)
			if err != nil {
				continue
			}
			if _, err := p.Bounds(); err == nil {
				place = c.Place(n.ID())
				return true
			}
		}
		return false
	})
	return place
}

// Append appends a batch to a partition wherever its leader is, trying again until it is acknowledged, and returns its
// offset. A try whose outcome is not known may have left the batch there once more.
func (c *Cluster) Append(stream string, partition int32, batch func() []byte) int64 {
	c.t.Helper()
	offset := int64(-1)
	c.Until("an append to "+stream, func() bool {
		for _, n := range c.Nodes() {
			p, err := n.Partition(stream, partition)
			if err != nil {
				continue
			}
			done := make(chan cluster.Appended, 1)
			if err := p.Append(context.Background(), batch(), func(a cluster.Appended) { done <- a }); err != nil {
				continue
			}
			a := <-done
			if a.Err == nil {
				offset = a.BaseOffset
				return true
			}
			if !errors.Is(a.Err, cluster.ErrNotLeader) && !errors.Is(a.Err, cluster.ErrUnknownOutcome) && !errors.Is(a.Err, cluster.ErrGroupClosed) {
				c.t.Fatalf("appending to %s: %v", stream, a.Err)
			}
		}
		return false
	})
	return offset
}
