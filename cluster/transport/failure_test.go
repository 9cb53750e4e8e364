package transport_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// stood waits for the order to stand for election, and says how long it took.
func stood(t *testing.T, g *transport.Group, began time.Time) time.Duration {
	t.Helper()
	for {
		select {
		case rpc := <-g.Consumer():
			if _, ok := rpc.Command.(*raft.TimeoutNowRequest); ok {
				rpc.Respond(&raft.TimeoutNowResponse{}, nil)
				return time.Since(began)
			}
			rpc.Respond(yes(rpc))
		case <-time.After(time.Minute):
			t.Fatal("the member was not told to stand")
		}
	}
}

// three opens three nodes with a group each, of which c leads.
func three(t *testing.T, n *pipes, o transport.Options) (nodes map[string]*transport.Transport, groups map[string]*transport.Group) {
	nodes, groups = map[string]*transport.Transport{}, map[string]*transport.Group{}
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		nodes[id] = n.node(t, id, o)
		g, err := nodes[id].Group(group)
		must(t, err)
		g.Bind(nil, raft.ServerID(id), membersOf("a", "b", "c"))
		groups[id] = g
	}
	for _, id := range ids {
		for _, other := range ids {
			nodes[id].SetPeer(other, other)
		}
	}
	synctest.Wait()
	for _, id := range []string{"a", "b"} {
		heard(t, groups["c"], groups[id], id, 1)
	}
	return nodes, groups
}

// When a leader's process is gone, the first of the living voters stands at once, the next one later, unless somebody
// leads by then.
func TestMembersStandInTurnWhenTheirLeaderDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, groups := three(t, newPipes(), transport.Options{})
		defer func() {
			for _, tr := range nodes {
				_ = tr.Close()
			}
		}()
		time.Sleep(time.Minute) // an idle minute changes nothing
		if s := nodes["a"].Stats(); s.Stood != 0 || s.Peers["c"].Sessions != 1 || !s.Peers["c"].Up {
			t.Fatalf("after an idle minute: %+v", s)
		}
		began := time.Now()
		must(t, nodes["c"].Close())
		first := stood(t, groups["a"], began)
		second := stood(t, groups["b"], began)
		if first > 50*time.Millisecond || second < 300*time.Millisecond || second > 400*time.Millisecond {
			t.Errorf("they were told to stand after %v and %v, want at once and after 300 ms", first, second)
		}
		for id, want := range map[string]bool{"a": false, "c": true} {
			if got := nodes["b"].Stats().Peers[id].Dead; got != want {
				t.Errorf("%s is dead: %v, want %v", id, got, want)
			}
		}
	})
}

// A member that follows another leader by the time it is its turn does not stand, nor does one that is no voter.
func TestAMemberWithALeaderDoesNotStand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, groups := three(t, newPipes(), transport.Options{})
		defer func() {
			for _, tr := range nodes {
				_ = tr.Close()
			}
		}()
		began := time.Now()
		must(t, nodes["c"].Close())
		stood(t, groups["a"], began)
		heard(t, groups["a"], groups["b"], "b", 2)
		select {
		case rpc := <-groups["b"].Consumer():
			t.Errorf("got %#v", rpc.Command)
		case <-time.After(10 * time.Second):
		}
	})
}

// gate is a connection that swallows what is written while it is shut.
type gate struct {
	net.Conn
	state *gateState
}

// gateState shuts the gates that share it.
type gateState struct{ shut atomic.Bool }

func (g *gate) Write(b []byte) (int, error) {
	if g.state.shut.Load() {
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// A machine that goes silent, its connections still open, is taken for dead after Silence: to the millisecond of a
// check, not by raft's timers.
func TestASilentMachineIsDeadAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := &gateState{}
		n := newPipes()
		n.wrap = func(c net.Conn) net.Conn { return &gate{Conn: c, state: state} }
		a, b := n.node(t, "a", transport.Options{}), n.node(t, "b", transport.Options{})
		defer a.Close()
		defer b.Close()
		g, err := a.Group(group)
		must(t, err)
		leader, err := b.Group(group)
		must(t, err)
		g.Bind(nil, "a", membersOf("a", "b"))
		a.SetPeer("b", "b")
		b.SetPeer("a", "a")
		synctest.Wait()
		heard(t, leader, g, "a", 1)
		state.shut.Store(true) // nobody hears anything any more, and nobody is told
		took := stood(t, g, time.Now())
		if took < 1500*time.Millisecond || took > 2300*time.Millisecond {
			t.Errorf("the member was told to stand after %v, want about 2 s", took)
		}
		if s := a.Stats().Peers["b"]; s.Up || !s.Dead {
			t.Errorf("got %+v", s)
		}
		state.shut.Store(false)
		time.Sleep(5 * time.Second)
		if s := a.Stats().Peers["b"]; !s.Up || s.Dead {
			t.Errorf("after it is back: %+v", s)
		}
	})
}

// A machine is silent from its last byte on, whichever connection that came on, and however long a new connection to it takes: a
// frozen process accepts one and does not say a word.
func TestANewConnectionToASilentMachineDoesNotPutOffItsDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asks, asked := &gateState{}, &gateState{}
		n := newPipes()
		through := func(g *gateState) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.wrap = func(c net.Conn) net.Conn { return &gate{Conn: c, state: g} }
		}
		a, b := n.node(t, "a", transport.Options{}), n.node(t, "b", transport.Options{})
		defer a.Close()
		defer b.Close()
		g, err := a.Group(group)
		must(t, err)
		leader, err := b.Group(group)
		must(t, err)
		g.Bind(nil, "a", membersOf("a", "b"))
		through(asked)
		b.SetPeer("a", "a")
		synctest.Wait()
		through(asks) // and whatever comes later
		a.SetPeer("b", "b")
		synctest.Wait()
		heard(t, leader, g, "a", 1)
		asks.shut.Store(true) // no answer comes any more
		time.Sleep(600 * time.Millisecond)
		asked.shut.Store(true) // nor anything else
		if took := stood(t, g, time.Now()); took < 1700*time.Millisecond || took > 2*time.Second {
			t.Errorf("the member was told to stand after %v, want 2 s after the last byte, which is up to 250 ms old", took)
		}
	})
}

// Heartbeats of a window go as one frame, and each gets its own answer.
func TestHeartbeatsOfAWindowShareAFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newPipes()
		o := transport.Options{Silence: -1, Window: 10 * time.Millisecond}
		a, b := n.node(t, "a", o), n.node(t, "b", o)
		defer a.Close()
		defer b.Close()
		a.SetPeer("b", "b")
		synctest.Wait()
		var asked sync.WaitGroup
		before := a.Stats().FramesSent
		began := time.Now()
		for i := range 50 {
			id := transport.GroupID{0: byte(i)}
			ga, err := a.Group(id)
			must(t, err)
			gb, err := b.Group(id)
			must(t, err)
			gb.Bind(nil, "b", membersOf("a", "b"))
			gb.SetHeartbeatHandler(func(rpc raft.RPC) { rpc.Respond(yes(rpc)) })
			asked.Go(func() { // the first of a term goes to raft's main goroutine
				rpc := <-gb.Consumer()
				rpc.Respond(&raft.AppendEntriesResponse{Term: uint64(i + 1), Success: true}, nil)
			})
			asked.Go(func() {
				for range 2 {
					var resp raft.AppendEntriesResponse
					if err := ga.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: uint64(i + 1)}, &resp); err != nil || !resp.Success || resp.Term != uint64(i+1) {
						t.Errorf("group %d: got %+v, %v", i, resp, err)
					}
				}
			})
		}
		asked.Wait()
		if took := time.Since(began); took < 20*time.Millisecond || took > 22*time.Millisecond { // which goroutine is first is open
			t.Errorf("two rounds took %v, want 2 × 10 ms, and up to 2 for answers from raft's main goroutine", took)
		}
		if got := a.Stats().FramesSent - before; got != 2 {
			t.Errorf("100 heartbeats went in %d frames, want 2", got)
		}
	})
}
