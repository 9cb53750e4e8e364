//go:build linux

package jepsen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// Cluster is one server on each machine of a lab: nodes, counted from 1, and behind them observers. A node that was taken
// out joins again under another id; its machine keeps its number. Safe for concurrent use.
type Cluster struct {
	lab    *lab.Lab
	binary string
	nodes  int
	dir    string // of the servers' files
	tls    bool   // between nodes

	machines []sync.Mutex // by number, less 1: held while a server is started, ended or replaced

	mu      sync.Mutex // guards all below
	servers map[int]*lab.Process
	leaving map[int]bool          // nodes that may be told that they are out, and end
	excused map[*lab.Process]bool // those that were killed, or whose disk was taken away
	ended   []error               // of servers that ended by themselves
}

const (
	kafkaPort   = 9092
	clusterPort = 7100
)

// newCluster starts a server on every machine, the observers last. The servers' files are made in dir.
func newCluster(l *lab.Lab, binary, dir string, nodes int, tls bool) (*Cluster, error) {
	c := &Cluster{
		lab: l, binary: binary, nodes: nodes, dir: dir, tls: tls, machines: make([]sync.Mutex, l.Machines()),
		servers: map[int]*lab.Process{}, leaving: map[int]bool{}, excused: map[*lab.Process]bool{},
	}
	if tls {
		var all []netip.Addr
		for n := range c.each() {
			all = append(all, l.Machine(n).Address())
		}
		if err := certify(dir, all...); err != nil {
			return nil, err
		}
	}
	for n := range c.each() {
		others := c.peers(n)
		if n == 1 {
			others = nil // it founds the cluster, this once
		}
		if err := c.startWith(n, others); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// each yields the numbers of the machines.
func (c *Cluster) each() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n := 1; n <= c.lab.Machines() && yield(n); n++ {
		}
	}
}

func (c *Cluster) address(n, port int) string {
	return fmt.Sprintf("%s:%d", c.lab.Machine(n).Address(), port)
}

// seeds are the nodes' addresses for clients.
func (c *Cluster) seeds() (all []string) {
	for n := 1; n <= c.nodes; n++ {
		all = append(all, c.address(n, kafkaPort))
	}
	return all
}

// watched are the observers' addresses for clients.
func (c *Cluster) watched() (all []string) {
	for n := c.nodes + 1; n <= c.lab.Machines(); n++ {
		all = append(all, c.address(n, kafkaPort))
	}
	return all
}

func rack(n int) string { return fmt.Sprintf("rack-%d", n) }

// racks are those of the nodes; one that is alone has none.
func (c *Cluster) racks() (all []string) {
	if c.nodes == 1 {
		return nil
	}
	for n := 1; n <= c.nodes; n++ {
		all = append(all, rack(n))
	}
	return all
}

// start starts a machine's server, where none runs.
func (c *Cluster) start(n int) error {
	c.machines[n-1].Lock()
	defer c.machines[n-1].Unlock()
	return c.startWith(n, c.peers(n))
}

// peers are the addresses of the nodes but for n; of an observer that is not the first, that of the one before.
func (c *Cluster) peers(n int) (all []string) {
	if n > c.nodes+1 {
		return []string{c.address(n-1, clusterPort)}
	}
	for other := 1; other <= c.nodes; other++ {
		if other != n {
			all = append(all, c.address(other, clusterPort))
		}
	}
	return all
}

// startWith is start for who holds the machine. A server with an empty folder asks the others to let it in.
func (c *Cluster) startWith(n int, others []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.servers[n]; p != nil && p.Ended() == nil {
		return nil
	}
	file, err := c.writeFile(n, others)
	if err != nil {
		return err
	}
	p, err := c.lab.Machine(n).Start(c.binary, "server", "--config", file)
	if err != nil {
		return err
	}
	c.servers[n] = p
	go c.watch(n, p)
	return nil
}

// writeFile makes the file of a machine's server.
func (c *Cluster) writeFile(n int, others []string) (string, error) {
	m := c.lab.Machine(n)
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\ndata: %s\nhttp: \"\"\nlisteners:\n  - address: %s\n", m.Disk.Data(), c.address(n, kafkaPort))
	if c.nodes > 1 {
		fmt.Fprintf(&b, "cluster:\n  listen: %s\n", c.address(n, clusterPort))
		key := "join"
		if n > c.nodes {
			key = "observe"
		}
		fmt.Fprintf(&b, "  rack: %s\n  %s: [%s]\n", rack(n), key, strings.Join(others, ", "))
		if c.tls {
			fmt.Fprintf(&b, "  tls: {cert: %[1]s/%[2]s.pem, key: %[1]s/%[2]s.key, ca: %[1]s/ca.pem}\n", c.dir, m.Address())
		}
	}
	file := filepath.Join(c.dir, fmt.Sprintf("server-%d.yaml", n))
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// watch notes a server that ends by itself.
func (c *Cluster) watch(n int, p *lab.Process) {
	<-p.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.excused[p] && !c.leaving[n] {
		c.ended = append(c.ended, fmt.Errorf("the server on machine %d ended by itself: %w", n, p.Ended()))
	}
}

// excuse returns a machine's server, whose end means nothing from now on.
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

// kill ends a machine's server at once.
func (c *Cluster) kill(n int) error {
	c.machines[n-1].Lock()
	defer c.machines[n-1].Unlock()
	return c.excuse(n).Kill()
}

// cutPower ends a machine's server, and what it has not synced is lost.
func (c *Cluster) cutPower(n int) error {
	c.machines[n-1].Lock()
	defer c.machines[n-1].Unlock()
	return errors.Join(c.excuse(n).Kill(), c.lab.Machine(n).Disk.PowerCut())
}

// dismiss says whether a node may end because it is told that it was taken out.
func (c *Cluster) dismiss(n int, may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving[n] = may
	if p := c.servers[n]; p.Ended() != nil {
		c.excused[p] = true
	}
}

// replace gives a node that was taken out an empty folder and a new server, which joins the others.
func (c *Cluster) replace(ctx context.Context, n int) error {
	c.machines[n-1].Lock()
	defer c.machines[n-1].Unlock()
	m := c.lab.Machine(n)
	if err := c.excuse(n).Kill(); err != nil {
		return err
	}
	if _, err := m.Output(ctx, "rm", "-rf", m.Disk.Data()); err != nil {
		return err
	}
	c.mu.Lock()
	c.leaving[n] = false
	c.mu.Unlock()
	return c.startWith(n, c.peers(n))
}

// selfEnded returns the servers' ends that nobody caused.
func (c *Cluster) selfEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.ended...)
}

// said is what all servers have written to their logs.
func (c *Cluster) said() (all []byte) {
	for n := range c.each() {
		if log, err := os.ReadFile(c.lab.Machine(n).Log()); err == nil { // a server that never began has none
			all = append(all, log...)
		}
	}
	return all
}

// raced is an error if a server, built with the race detector, has seen a data race.
func (c *Cluster) raced() error {
	if bytes.Contains(c.said(), []byte("WARNING: DATA RACE")) {
		return errors.New("a server has a data race: its log says where")
	}
	return nil
}

// close excuses all servers; the lab kills them.
func (c *Cluster) close() {
	for n := range c.each() {
		c.excuse(n)
	}
}
