package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/transport"
)

// at opens a transport that is reached at an address, whatever its node's id is.
func (n *pipes) at(t testing.TB, address, id string) *transport.Transport {
	t.Helper()
	return open(t, transport.Options{Node: id, Listener: n.listen(address), Dial: n.dial, Advertise: address})
}

// open opens a transport that takes greetings.
func open(t testing.TB, o transport.Options) *transport.Transport {
	t.Helper()
	if o.Cluster == "" {
		o.Cluster = "test"
	}
	o.HandleStranger = func(context.Context, []byte, *tls.ConnectionState) ([]byte, error) {
		return nil, errors.New("nobody asks in these tests")
	}
	tr, err := transport.Open(o)
	must(t, err)
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// reaches says whether a has a session to a node at an address.
func reaches(a *transport.Transport, id, address string) func() bool {
	return func() bool { s := a.Stats().Peers[id]; return s.Up && s.Address == address }
}

// A node that comes back at another address is found there once it has said hello, and that is kept when others say where
// it was, or where it is.
func TestANodeThatMovedIsFound(t *testing.T) {
	t.Parallel()
	n := newPipes()
	a, old := n.at(t, "a", "a"), n.at(t, "b", "b")
	a.SetPeer("b", "b")
	old.SetPeer("a", "a")
	until(t, "a to reach b", reaches(a, "b", "b"))
	must(t, old.Close())
	b := n.at(t, "elsewhere", "b")
	b.SetPeer("a", "a")
	until(t, "a to reach b elsewhere", reaches(a, "b", "elsewhere"))
	sessions := a.Stats().Peers["b"].Sessions
	a.SetPeer("b", "b")
	a.SetPeer("b", "elsewhere")
	if s := a.Stats().Peers["b"]; !s.Up || s.Sessions != sessions {
		t.Errorf("after its address was known: %+v, had %d sessions", s, sessions)
	}
	must(t, b.Close())
	n.at(t, "b", "b").SetPeer("a", "a")
	until(t, "a to reach b where it was before", reaches(a, "b", "b"))
}

// Nodes of which none is where the others know it to be find each other by one greeting.
func TestAGreetingFindsWhoMoved(t *testing.T) {
	t.Parallel()
	n := newPipes()
	a, b := n.at(t, "a2", "a"), n.at(t, "b2", "b")
	a.SetPeer("b", "b")
	b.SetPeer("a", "a")
	if id, err := a.Greet(t.Context(), "b2"); id != "b" || err != nil {
		t.Fatalf("b answers as %q, %v", id, err)
	}
	until(t, "both to reach each other", func() bool { return reaches(a, "b", "b2")() && reaches(b, "a", "a2")() })
	if id, err := a.Greet(t.Context(), "a2"); id != "a" || err != nil {
		t.Errorf("a answers itself as %q, %v", id, err)
	}
	var refused *transport.RefusedError
	open(t, transport.Options{Cluster: "other", Node: "a", Listener: n.listen("x"), Dial: n.dial})
	if _, err := a.Greet(t.Context(), "x"); !errors.As(err, &refused) || !refused.Foreign {
		t.Errorf("a node of another cluster said %v", err)
	}
}

// A copy of a running node's directory is refused as long as the node is heard of on any connection, also by who has not
// been dialed by it, and gets nobody to look for the node at its own address.
func TestACopyDoesNotTakeALiveNodesPlace(t *testing.T) {
	t.Parallel()
	n := newPipes()
	a, b := n.at(t, "a", "a"), n.at(t, "b", "b")
	a.SetPeer("b", "b")
	until(t, "a to reach b, which does not know it", reaches(a, "b", "b"))
	copied := n.at(t, "elsewhere", "b")
	copied.SetPeer("a", "a")
	var refused *transport.RefusedError
	if _, err := copied.Greet(t.Context(), "a"); !errors.As(err, &refused) || !refused.Doubled {
		t.Errorf("the copy was told %v", err)
	}
	until(t, "the copy to be refused for a while", func() bool { return copied.Stats().Peers["a"].Doubled > 0 })
	if s := a.Stats().Peers["b"]; !s.Up || s.Address != "b" || s.Sessions != 1 {
		t.Errorf("a knows b as %+v", s)
	}
	must(t, b.Close())
	until(t, "the copy to be all there is", reaches(a, "b", "elsewhere"))
	until(t, "the copy to know that", func() bool { return copied.Stats().Peers["a"].Doubled == 0 })
}

// Who goes on trying as the double of a node is named to who asks. Which of both it is, nobody here knows.
func TestWhoStaysADoubleIsNamed(t *testing.T) {
	t.Parallel()
	n := newPipes()
	at := func(address, id string) *transport.Transport {
		return open(t, transport.Options{Node: id, Listener: n.listen(address), Dial: n.dial, Advertise: address, Silence: time.Second})
	}
	a, b, other := at("a", "a"), at("b", "b"), at("elsewhere", "b")
	a.SetPeer("b", "b")
	b.SetPeer("a", "a")
	until(t, "a to reach b", reaches(a, "b", "b"))
	if s := a.Stats().Peers["b"]; s.Twin != "" {
		t.Errorf("there is one, at %s", s.Twin)
	}
	other.SetPeer("a", "a")
	until(t, "the other to be named", func() bool { twin := a.Stats().Peers["b"].Twin; return twin == "elsewhere" || twin == "b" })
}

// With TLS a node is looked for elsewhere only where its certificate is valid, and only by its own name.
func TestANodeThatMovedHasACertificateForItsAddress(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	at := func(node, host string) (*transport.Transport, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		address := net.JoinHostPort(host, port)
		return open(t, transport.Options{Node: node, Listener: l, TLS: ca.config(t, node), Authenticate: named, Advertise: address}), address
	}
	a, atA := at("a", "127.0.0.1")
	b, atB := at("b", "127.0.0.1")
	c, _ := at("c", "localhost") // its certificate is for 127.0.0.1
	for id, moved := range map[string]*transport.Transport{"b": b, "c": c} {
		a.SetPeer(id, "127.0.0.1:1")
		moved.SetPeer("a", atA)
		until(t, id+" to reach a", func() bool { return moved.Stats().Peers["a"].Up })
	}
	until(t, "a to reach b", reaches(a, "b", atB))
	until(t, "a to have tried c", func() bool {
		err := a.Stats().Peers["c"].Err
		return err != nil && strings.Contains(err.Error(), "certificate")
	})
	if s := a.Stats().Peers["c"]; s.Sessions > 0 {
		t.Errorf("a reached c: %+v", s)
	}
}
