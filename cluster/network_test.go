package cluster_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/transport"
)

// network is the loopback interface with a wire from each node to each other that a test can cut, slow down, or make
// swallow what is sent in one direction.
type network struct {
	t      testing.TB
	o      transport.Options // for all nodes
	places map[string]*place
	wires  map[[2]string]*wire // from the node that connects to the one that listens
}

// place is where a node listens, over its restarts.
type place struct {
	trans   *transport.Transport
	address string
}

func newNetwork(t testing.TB, o transport.Options) *network {
	o.Cluster = "test"
	n := &network{t: t, o: o, places: map[string]*place{}, wires: map[[2]string]*wire{}}
	t.Cleanup(func() {
		for id := range n.places {
			n.stop(id)
		}
	})
	return n
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must(t, err)
	return l
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
	o.Node, o.Listener = id, listen(n.t, p.address)
	p.address = o.Listener.Addr().String()
	var err error
	p.trans, err = transport.Open(o)
	must(n.t, err)
	for other := range n.places {
		if other == id {
			continue
		}
		p.trans.SetPeer(other, n.wire(id, other).open())
		there := n.wire(other, id).open()
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
			w.close()
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
func (n *network) wire(from, to string) *wire {
	key := [2]string{from, to}
	if n.wires[key] == nil {
		n.wires[key] = &wire{t: n.t, target: n.places[to].address, listening: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	}
	return n.wires[key]
}

// each calls f for the wires between a node and the others.
func (n *network) each(id string, f func(*wire)) {
	for key, w := range n.wires {
		if key[0] == id || key[1] == id {
			f(w)
		}
	}
}

// isolate loses whatever is sent from and to a node, as a pulled cable does; rejoin mends it.
func (n *network) isolate(id string) { n.each(id, func(w *wire) { w.swallow(true, true) }) }
func (n *network) rejoin(id string)  { n.each(id, func(w *wire) { w.swallow(false, false) }) }

// wire forwards connections.
type wire struct {
	t      testing.TB
	target string

	mu        sync.Mutex // guards all below
	listening string
	listener  net.Listener
	conns     map[net.Conn]bool
	lost      [2]bool // what is sent to the target, what comes back
	delay     time.Duration
	perSecond int // bytes; 0: as fast as it goes
	running   sync.WaitGroup
}

// open makes the wire's end accept, and returns its address.
func (w *wire) open() string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener == nil {
		w.listener = listen(w.t, w.listening)
		w.listening = w.listener.Addr().String()
		l := w.listener
		w.running.Go(func() { w.accept(l) })
	}
	return w.listening
}

// close refuses connections and ends those there are.
func (w *wire) close() {
	w.mu.Lock()
	l := w.listener
	w.listener = nil
	w.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	w.cut()
	w.running.Wait()
}

// cut ends all connections; new ones can be made.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
}

func (w *wire) swallow(to, from bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = [2]bool{to, from}
}

func (w *wire) slow(delay time.Duration, perSecond int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay, w.perSecond = delay, perSecond
}

func (w *wire) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() { w.forward(c) })
	}
}

func (w *wire) forward(c net.Conn) {
	target, err := net.DialTimeout("tcp", w.target, 5*time.Second)
	if err != nil {
		_ = c.Close()
		return
	}
	w.mu.Lock()
	w.conns[c], w.conns[target] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for direction, ends := range [2][2]net.Conn{{target, c}, {c, target}} {
		both.Go(func() {
			w.pump(ends[0], ends[1], direction)
			_ = c.Close()
			_ = target.Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	delete(w.conns, target)
}

// pump copies until an end is closed. What is lost is lost for good: a connection that lost bytes is never mended.
func (w *wire) pump(to, from net.Conn, direction int) {
	buf := make([]byte, 64<<10)
	gap := false
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		lost, wait := w.lost[direction], w.delay
		if w.perSecond > 0 {
			wait += time.Duration(n) * time.Second / time.Duration(w.perSecond)
		}
		w.mu.Unlock()
		if gap && !lost {
			return
		}
		if gap = gap || lost; lost {
			continue
		}
		if wait > 0 {
			time.Sleep(wait) // it is the wire that is slow
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
