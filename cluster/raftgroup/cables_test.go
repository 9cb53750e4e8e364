package raftgroup_test

import (
	"testing"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/cable"
)

// network is the loopback interface with a wire from each node to each other that a test can cut, slow down, or make
// swallow what is sent in one direction.
type network struct {
	t      testing.TB
	o      transport.Options // for all nodes
	places map[string]*place
	wires  map[[2]string]*cable.Cable // from the node that connects to the one that listens
}

// place is where a node listens, over its restarts.
type place struct {
	trans   *transport.Transport
	address string
}

func newNetwork(t testing.TB, o transport.Options) *network {
	o.Cluster = "test"
	n := &network{t: t, o: o, places: map[string]*place{}, wires: map[[2]string]*cable.Cable{}}
	t.Cleanup(func() {
		for id := range n.places {
			n.stop(id)
		}
	})
	return n
}

// start brings a node's transport up; wires lead from and to all others.
func (n *network) start(id string) *transport.Transport {
	n.t.Helper()
	p := n.places[id]
	if p == nil {
		p = &place{address: "127.0.0.1:0"}
		n.places[id] = p
	}
	o := n.o
	o.Node, o.Listener = id, cable.Listen(n.t, p.address)
	p.address = o.Listener.Addr().String()
	var err error
	p.trans, err = transport.Open(o)
	must(n.t, err)
	for other := range n.places {
		if other == id {
			continue
		}
		p.trans.SetPeer(other, n.wire(id, other).Open())
		there := n.wire(other, id).Open()
		if t := n.places[other].trans; t != nil {
			t.SetPeer(id, there)
		}
	}
	return p.trans
}

// stop ends a node's transport: nothing listens there any more.
func (n *network) stop(id string) {
	n.t.Helper()
	for key, w := range n.wires {
		if key[0] == id || key[1] == id {
			w.Close()
		}
	}
	if p := n.places[id]; p.trans != nil {
		if err := p.trans.Close(); err != nil {
			n.t.Errorf("closing the transport of %s: %v", id, err)
		}
		p.trans = nil
	}
}

// wire returns the wire on which from connects to to.
func (n *network) wire(from, to string) *cable.Cable {
	key := [2]string{from, to}
	if n.wires[key] == nil {
		n.wires[key] = cable.New(n.t, n.places[to].address)
	}
	return n.wires[key]
}

// each calls f for the wires between a node and the others.
func (n *network) each(id string, f func(*cable.Cable)) {
	for key, w := range n.wires {
		if key[0] == id || key[1] == id {
			f(w)
		}
	}
}

// isolate loses whatever is sent from and to a node, as a pulled cable does; rejoin mends it.
func (n *network) isolate(id string) { n.each(id, func(w *cable.Cable) { w.Swallow(true, true) }) }
func (n *network) rejoin(id string)  { n.each(id, func(w *cable.Cable) { w.Swallow(false, false) }) }
