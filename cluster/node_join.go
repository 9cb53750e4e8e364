package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/recovery"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/internal/strictjson"
)

// joinPatience is how long a node that is to join waits for one that lets it in.
const joinPatience = time.Minute

// ErrAbandoned: the waiting to be let in was ended from outside.
var ErrAbandoned = errors.New("stopped before a node let this one in")

// joinAnswer is what a node is told that asked to join with a joinCluster.
type joinAnswer struct {
	Cluster    string            `json:"cluster_id"`
	Generation uint64            `json:"generation,omitempty"`
	Node       int32             `json:"node_id"`
	Members    []metadata.Member `json:"members"`
}

// identify finds out which node of which cluster the directory belongs to, and notes it before anything else is done.
func (n *Node) identify() error {
	if n.Observes() {
		return n.identifyObserver()
	}
	f, found, err := datadir.OpenFile(n.opts.FS, n.opts.Dir)
	if err != nil {
		return err
	}
	if f.Get().Observes {
		return fmt.Errorf("%s is an observer's directory: start it as one", n.opts.Dir)
	}
	n.file = f
	if err := cmp.Or(n.refuseRemoved(), n.refuseSetBack()); err != nil {
		return err
	}
	if err := recovery.RefuseUnfinished(n.dir); err != nil {
		return err
	}
	net := n.opts.Network
	switch {
	case net == nil && !found:
		n.id = metadata.FoundingNode
		return nil // a node alone has no file
	case net == nil:
		n.id = f.Get().Node
		return nil
	case !found:
		if err := n.begin(); err != nil {
			return err
		}
	}
	if f.Get().Node == 0 {
		if err := n.askToJoin(); err != nil {
			return err
		}
	}
	n.id = f.Get().Node
	return f.CountStart()
}

// begin makes the node's file: of the founding node, of one that was alone so far, or of one that is going to join.
func (n *Node) begin() error {
	alone, err := datadir.PeekMeta(n.opts.FS, n.opts.Dir)
	was := err == nil && alone.ClusterID() != ""
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case was && len(alone.Members()) > 0:
		return fmt.Errorf("%s is the directory of a node of cluster %s, but its %s, which says of which node, is missing: restore it, or take the node out of the cluster and join with an empty directory",
			n.opts.Dir, alone.ClusterID(), datadir.FileName)
	case was && len(n.opts.Network.Join) > 0:
		return fmt.Errorf("%s is the directory of cluster %s and cannot join another one: let the others join this node, or join with an empty directory", n.opts.Dir, alone.ClusterID())
	}
	streams, err := n.opts.FS.ReadDir(n.dir.Streams())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(streams) > 0 && !was {
		return fmt.Errorf("%s holds streams, but neither metadata nor a %s: put them back, or move %s away", n.opts.Dir, datadir.FileName, datadir.StreamsName)
	}
	return n.file.Update(func(i *datadir.Identity) {
		i.Token = datadir.NewToken()
		if len(n.opts.Network.Join) > 0 {
			return
		}
		i.Node, i.Founding, i.Cluster = metadata.FoundingNode, true, newClusterID()
		if was {
			i.Cluster = alone.ClusterID()
		}
	})
}

// askToJoin asks the given nodes for an id, all at the same time, until one of them gives it: they may be joining too, and
// say nothing until somebody has let them in. A node that is let in by several gets the same id from each, by its token.
func (n *Node) askToJoin() error {
	net := n.opts.Network
	others := slices.DeleteFunc(slices.Clone(net.Join), func(address string) bool { return address == net.address() })
	switch {
	case len(net.Join) == 0:
		return fmt.Errorf("%s was to join a cluster and has no id yet: give the address of a node to join, or, to found a cluster, empty the folder", n.opts.Dir)
	case len(others) == 0:
		return fmt.Errorf("%s is this node's own address: give that of another node to join, or none to found a cluster", net.address())
	}
	question, err := json.Marshal(metadata.JoinCluster{Token: n.file.Get().Token, Address: net.address(), Rack: net.Rack})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, joinPatience)
	defer cancel()
	var asking sync.WaitGroup
	asking.Go(func() {
		select {
		case <-net.Abandon:
			cancel()
		case <-ctx.Done():
		}
	})
	answers, errs := make(chan joinAnswer, len(others)), make([]error, len(others))
	for i, address := range others {
		asking.Go(func() {
			a, err := n.askAgain(ctx, address, question)
			if errs[i] = err; err == nil {
				answers <- a
				cancel()
			}
		})
	}
	asking.Wait()
	select {
	case a := <-answers:
		return n.noteJoined(a)
	case <-net.Abandon:
		return fmt.Errorf("%w: %w", ErrAbandoned, errors.Join(errs...))
	default:
		return fmt.Errorf("joining the cluster: no node let this one in; nodes let others in once they are in themselves; if there is no cluster yet, start one of them without any to join: %w", errors.Join(errs...))
	}
}

// askAgain asks the node at an address until it lets this one in, or ctx ends; the error is then what was said last. What
// keeps it out is logged as it changes.
func (n *Node) askAgain(ctx context.Context, address string, question []byte) (joinAnswer, error) {
	var said error
	for told := ""; ; {
		a, err := n.askOne(ctx, address, question)
		if err == nil {
			return a, nil
		}
		if ctx.Err() == nil || said == nil {
			said = err
		}
		if text := retry.Gist(err); text != told && ctx.Err() == nil {
			told = text
			n.logger.Warn("a node did not let this one in; asking again", "address", address, "error", err)
		}
		select {
		case <-ctx.Done():
			return joinAnswer{}, fmt.Errorf("%s: %w", address, said)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (n *Node) askOne(ctx context.Context, address string, question []byte) (a joinAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience/4)
	defer cancel()
	b, err := transport.Ask(ctx, transport.Options{Dial: n.opts.Network.Dial, TLS: n.opts.Network.TLS}, address, question)
	if err != nil {
		return a, err
	}
	err = json.Unmarshal(b, &a)
	if err == nil && (a.Node <= 0 || a.Cluster == "") {
		err = errors.New("the answer names no node")
	}
	return a, err
}

func (n *Node) noteJoined(a joinAnswer) error {
	return n.file.Update(func(i *datadir.Identity) {
		i.Cluster, i.Generation, i.Node = a.Cluster, a.Generation, a.Node
		i.Peers = addresses(a.Members, a.Node)
	})
}

// addresses are where the members but for one can be reached.
func addresses(members []metadata.Member, but int32) map[int32]string {
	all := map[int32]string{}
	for _, m := range members {
		if m.ID != but && m.Address != "" {
			all[m.ID] = m.Address
		}
	}
	return all
}

// takeIn answers a node that asks to join.
func (n *Node) takeIn(ctx context.Context, body []byte, state *tls.ConnectionState) ([]byte, error) {
	var c metadata.JoinCluster
	if err := strictjson.Decode(body, &c); err != nil {
		return nil, fmt.Errorf("reading the request to join: %w", err)
	}
	if c.Token == "" || c.Address == "" {
		return nil, errors.New("a request to join needs a token and an address")
	}
	select {
	case <-n.ready: // the founding node is in the metadata
	default:
		return nil, errors.New("this node is starting: ask again")
	}
	for _, m := range n.meta.Members() {
		if m.Address == c.Address && n.Up(m.ID) { // another machine may take the place of one that is dead
			return nil, fmt.Errorf("%s is the address of node %d, which is up: every node needs one of its own, at which the others reach it", c.Address, m.ID)
		}
	}
	if err := n.mayJoin(c.Address, state); err != nil {
		return nil, err
	}
	if err := n.tryAddress(ctx, c.Address); err != nil {
		return nil, err
	}
	v, err := n.proposer.propose(ctx, metadata.Command{JoinCluster: &c})
	if err != nil {
		return nil, err
	}
	return json.Marshal(joinAnswer{Cluster: n.ClusterID(), Generation: n.file.Get().Generation, Node: v.(metadata.Member).ID, Members: n.meta.Members()})
}

// address is what the other nodes are told.
func (net *Network) address() string {
	return cmp.Or(net.Advertise, net.Listener.Addr().String())
}

// register puts this node's addresses into the metadata, if they are others than those there.
func (n *Node) register(ctx context.Context, listeners map[string]string) error {
	net := n.opts.Network
	old, ok := n.meta.Member(n.id)
	if !ok {
		if n.id != metadata.FoundingNode || len(n.meta.Members()) > 0 {
			return fmt.Errorf("%w: node %d; to join again, empty %s", metadata.ErrRemoved, n.id, n.opts.Dir)
		}
		v, err := n.proposer.propose(ctx, metadata.Command{JoinCluster: &metadata.JoinCluster{Token: n.file.Get().Token, Address: net.address(), Rack: net.Rack}})
		if err != nil {
			return err
		}
		old = v.(metadata.Member)
	}
	next := old
	next.Address, next.Rack = net.address(), net.Rack
	if listeners != nil {
		next.Listeners = listeners
	}
	if next.Address == old.Address && next.Rack == old.Rack && maps.Equal(next.Listeners, old.Listeners) {
		return nil
	}
	_, err := n.proposer.propose(ctx, metadata.Command{PutMember: &metadata.PutMember{Member: next}})
	return err
}
