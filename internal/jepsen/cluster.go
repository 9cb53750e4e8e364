//go:build linux

package jepsen

import (
	"errors"
	"fmt"
	"sync"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// Cluster is one server on each machine of a lab. Nodes are counted from 1. Safe for concurrent use.
type Cluster struct {
	lab    *lab.Lab
	binary string
	args   []string

	mu      sync.Mutex // guards all below
	servers map[int]*lab.Process
	excused map[*lab.Process]bool // those that were killed, or whose disk was taken away
	ended   []error               // of servers that ended by themselves
}

const (
	kafkaPort   = 9092
	clusterPort = 7100
)

// newCluster starts a server on every machine.
func newCluster(l *lab.Lab, binary string, args []string) (*Cluster, error) {
	c := &Cluster{lab: l, binary: binary, args: args, servers: map[int]*lab.Process{}, excused: map[*lab.Process]bool{}}
	for n := range c.each() {
		if err := c.start(n); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// each yields the numbers of the nodes.
func (c *Cluster) each() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n := 1; n <= c.size() && yield(n); n++ {
		}
	}
}

func (c *Cluster) size() int { return c.lab.Machines() }

func (c *Cluster) address(n, port int) string {
	return fmt.Sprintf("%s:%d", c.lab.Machine(n).Address(), port)
}

// seeds are the addresses for clients.
func (c *Cluster) seeds() (all []string) {
	for n := range c.each() {
		all = append(all, c.address(n, kafkaPort))
	}
	return all
}

func rack(n int) string { return fmt.Sprintf("rack-%d", n) }

// racks are those of the nodes; one that is alone has none.
func (c *Cluster) racks() (all []string) {
	if c.size() == 1 {
		return nil
	}
	for n := range c.each() {
		all = append(all, rack(n))
	}
	return all
}

// start starts a node's server, where none runs.
func (c *Cluster) start(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.servers[n]; p != nil && p.Ended() == nil {
		return nil
	}
	m := c.lab.Machine(n)
	args := append([]string{"server", "--data", m.Disk.Data(), "--kafka", c.address(n, kafkaPort), "--http", ""}, c.args...)
	if c.size() > 1 {
		args = append(args, "--cluster", c.address(n, clusterPort), "--rack", rack(n))
		if n > 1 {
			args = append(args, "--join", c.address(1, clusterPort))
		}
	}
	p, err := m.Start(c.binary, args...)
	if err != nil {
		return err
	}
	c.servers[n] = p
	go c.watch(n, p)
	return nil
}

// watch notes a server that ends by itself.
func (c *Cluster) watch(n int, p *lab.Process) {
	<-p.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.excused[p] {
		c.ended = append(c.ended, fmt.Errorf("the server on node %d ended by itself: %w", n, p.Ended()))
	}
}

// excuse returns a node's server, whose end means nothing from now on.
func (c *Cluster) excuse(n int) *lab.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.servers[n]
	c.excused[p] = true
	return p
}

func (c *Cluster) server(n int) *lab.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[n]
}

// kill ends a node's server at once.
func (c *Cluster) kill(n int) error { return c.excuse(n).Kill() }

// cutPower ends a node's server, and what it has not synced is lost.
func (c *Cluster) cutPower(n int) error {
	return errors.Join(c.kill(n), c.lab.Machine(n).Disk.PowerCut())
}

// selfEnded returns the servers' ends that nobody caused.
func (c *Cluster) selfEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.ended...)
}

// close excuses all servers; the lab kills them.
func (c *Cluster) close() {
	for n := range c.each() {
		c.excuse(n)
	}
}
