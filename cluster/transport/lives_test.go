package transport_test

import (
	"errors"
	"testing"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A process that comes with a start of its node that another one had, or with an earlier one, runs on a folder that was set
// back, and is connected to in neither direction. The node's next process is.
func TestWhoseFolderWasSetBackIsNotLetIn(t *testing.T) {
	t.Parallel()
	n := newPipes()
	at := func(id string, o transport.Options) *transport.Transport {
		o.Node, o.Listener, o.Dial, o.Advertise = id, n.listen(id), n.dial, id
		return open(t, o)
	}
	a := at("a", transport.Options{Started: func(node string) uint64 { return map[string]uint64{"c": 7}[node] }})
	b := at("b", transport.Options{Start: 3})
	a.SetPeer("b", "b")
	a.SetPeer("c", "c")
	b.SetPeer("a", "a")
	until(t, "both to be connected", func() bool { return a.Stats().Peers["b"].Up && b.Stats().Peers["a"].Up })
	must(t, b.Close())

	setBack := func(id string, start uint64) {
		t.Helper()
		before := a.Stats().Peers[id].Sessions
		tr := at(id, transport.Options{Start: start})
		tr.SetPeer("a", "a")
		until(t, "it to be told", func() bool {
			var refused *transport.RefusedError
			return errors.As(tr.Stats().Peers["a"].Err, &refused) && refused.SetBack
		})
		if s := a.Stats().Peers[id]; s.Up || s.Sessions != before {
			t.Errorf("start %d of %s is connected to: %+v", start, id, s)
		}
		must(t, tr.Close())
	}
	setBack("b", 3) // as many starts as the one that is gone, but another process
	setBack("b", 2)
	setBack("c", 6) // never met, but known from elsewhere

	next := at("b", transport.Options{Start: 4})
	next.SetPeer("a", "a")
	until(t, "the next process to be connected", func() bool { return a.Stats().Peers["b"].Up && next.Stats().Peers["a"].Up })
}
