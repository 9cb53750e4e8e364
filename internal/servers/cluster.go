package servers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/services"
)

// Options say what is started.
type Options struct {
	// Binary is the daybook command. Required.
	Binary string
	// Dir is where each node gets a folder with its data and its log. Required.
	Dir string
	// Nodes is how many there are; 3 if 0.
	Nodes int
	// Args are further arguments of each.
	Args []string
	// Config returns the text of a node's file, which is then started by it instead of flags; nil for flags.
	Config func(n *Node) string
}

// Cluster is some nodes. Node i is the one with id i+1.
type Cluster struct {
	nodes   []*Node
	release []func() error
}

// Start starts the nodes one after the other, so that each gets its id, and waits until all are ready. Nothing is left of
// them if it fails.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	c := &Cluster{}
	for i := range o.Nodes {
		n, err := c.add(i, o)
		if err == nil {
			err = n.Start()
		}
		if err == nil {
			err = n.AwaitReady(ctx)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("starting node %d: %w", i+1, err), c.Close())
		}
	}
	return c, nil
}

func (c *Cluster) add(i int, o Options) (*Node, error) {
	n := &Node{ID: i + 1, Dir: filepath.Join(o.Dir, fmt.Sprint("node-", i+1)), binary: o.Binary, config: o.Config, args: o.Args}
	for _, addr := range []*string{&n.Kafka, &n.HTTP, &n.Peer} {
		at, release, err := services.Address()
		if err != nil {
			return nil, err
		}
		*addr, c.release = at, append(c.release, release)
	}
	if i > 0 {
		n.Join = c.nodes[0].Peer
	}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// Nodes are all of them.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Seeds are the addresses for Kafka clients.
func (c *Cluster) Seeds() (all []string) {
	for _, n := range c.nodes {
		all = append(all, n.Kafka)
	}
	return all
}

// PIDs are those of the processes that run.
func (c *Cluster) PIDs() (all []int) {
	for _, n := range c.nodes {
		if n.Running() == nil {
			all = append(all, n.PID())
		}
	}
	return all
}

// Close asks all nodes to end, at the same time, and returns the errors of those that did not end well.
func (c *Cluster) Close() error {
	var all errgroup.Group
	errs := make([]error, len(c.nodes))
	for i, n := range c.nodes {
		all.Go(func() error {
			errs[i] = n.Stop()
			return nil
		})
	}
	_ = all.Wait() // their errors are in errs
	for _, release := range c.release {
		errs = append(errs, release())
	}
	c.release = nil
	return errors.Join(errs...)
}
