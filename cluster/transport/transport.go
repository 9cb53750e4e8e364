package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// maxGreeting bounds the connections that have not yet said who they are.
const maxGreeting = 64

// Transport carries the messages of all groups of a node. It is safe for concurrent use.
type Transport struct {
	o        Options
	stats    counters
	memory   buffers
	commits  commits
	beats    beats
	budget   budget
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	running  sync.WaitGroup
	greeting chan struct{} // holds a token for each connection that is not yet introduced
	strange  chan struct{} // holds one for each stranger that is being answered
	watchers chan struct{} // and one for each observer
	instance uint64        // of this process
	lives    lives
	opened   time.Time // where moments begin

	complaints complaints

	mu     sync.Mutex // guards all below
	peers  map[string]*peer
	groups map[GroupID]*Group
	member map[memberAddress]*Group // those that are bound
	served map[servedKey]*served
	closed bool
}

// servedKey is what there is at most one connection for.
type servedKey struct {
	node string
	lane uint8
}

// Open starts a transport on o.Listener, without peers.
func Open(o Options) (*Transport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("opening the transport between nodes: %w", err)
	}
	t := &Transport{
		o: o, budget: budget{limit: o.ReceiveBytes}, greeting: make(chan struct{}, maxGreeting),
		strange: make(chan struct{}, strangersAtOnce), watchers: make(chan struct{}, observersAtOnce), instance: rand.Uint64() | 1, opened: time.Now(),
		peers: map[string]*peer{}, groups: map[GroupID]*Group{}, member: map[memberAddress]*Group{}, served: map[servedKey]*served{},
	}
	t.commits.t = t
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.running.Go(t.accept)
	return t, nil
}

// enter counts the caller among what Close waits for, until running.Done. It returns false if Close has begun.
func (t *Transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Add(1)
	}
	return !t.closed
}

// Node is this node's id.
func (t *Transport) Node() string { return t.o.Node }

// SetPeer makes another node known, or says where it is now. The transport connects to it and keeps connected.
func (t *Transport) SetPeer(id, address string) {
	t.mu.Lock()
	p := t.peers[id]
	if t.closed || id == t.o.Node || p != nil {
		t.mu.Unlock()
		if p != nil {
			p.move(address)
		}
		return
	}
	p = newPeer(t, id, address)
	t.peers[id] = p
	t.running.Go(p.run)
	if t.o.Silence >= 0 {
		t.running.Go(p.listen)
	}
	t.mu.Unlock()
}

// RemovePeer forgets another node.
func (t *Transport) RemovePeer(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[id]; p != nil {
		delete(t.peers, id)
		p.remove()
	}
}

// Close ends all sessions and groups and waits until nothing of the transport runs. Close raft first: requests that it
// is working on are answered to nobody.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.running.Wait()
		return nil
	}
	t.closed = true
	groups := slices.Collect(maps.Values(t.groups))
	t.peers = map[string]*peer{}
	serving := slices.Collect(maps.Values(t.served))
	t.mu.Unlock()
	t.cancel()
	err := t.o.Listener.Close()
	for _, s := range serving {
		s.out.close(ErrClosed)
	}
	for _, g := range groups {
		_ = g.Close() // it has no errors
	}
	t.running.Wait()
	return err
}

func (t *Transport) peer(id string) (*peer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch p := t.peers[id]; {
	case t.closed:
		return nil, ErrClosed
	case p == nil:
		return nil, fmt.Errorf("%w: no node %q is known", ErrUnreachable, id)
	default:
		return p, nil
	}
}

func (t *Transport) peerList() []*peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.peers))
}

// local returns the group whose local member has an address, nil if there is none.
func (t *Transport) local(member memberAddress) *Group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.member[member]
}

// accept takes connections until the listener is closed.
func (t *Transport) accept() {
	for {
		conn, err := t.o.Listener.Accept()
		if errors.Is(err, net.ErrClosed) || t.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			t.o.Logger.Warn("a connection of another node could not be accepted; trying again", "error", err)
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(leastBackoff):
			}
			continue
		}
		select {
		case t.greeting <- struct{}{}:
			t.running.Go(func() { t.serve(conn) })
		default: // those that are here have to introduce themselves first, or go at their deadline
			t.stats.refused.Add(1)
			_ = conn.Close()
		}
	}
}

// serve introduces a connection and answers what comes on it.
func (t *Transport) serve(raw net.Conn) {
	stop := context.AfterFunc(t.ctx, func() { _ = raw.Close() })
	defer stop()
	conn, r, h, err := t.receive(t.ctx, raw)
	<-t.greeting
	if err != nil {
		_ = raw.Close()
		t.stats.refused.Add(1)
		if t.ctx.Err() == nil && !errors.Is(err, errEmpty) && t.complaints.due(raw.RemoteAddr(), time.Now()) {
			t.o.Logger.Warn("a connection was refused: the other side is no node of this cluster; others of its host within a minute are only counted", "from", raw.RemoteAddr(), "error", err)
		}
		return
	}
	switch h.lane {
	case laneStranger:
		t.met(h)
		t.serveStrangers(conn, r)
		return
	case laneObserver:
		t.serveObserver(conn, r, h)
		return
	}
	t.met(h)
	s := newServed(t, h, conn)
	key := servedKey{h.node, h.lane}
	t.mu.Lock()
	older := t.served[key]
	t.served[key] = s
	t.mu.Unlock()
	if older != nil { // it is a node that connects again before the end of its last connection was seen
		older.out.close(errReplaced)
	}
	err = s.run(r)
	t.mu.Lock()
	if t.served[key] == s {
		delete(t.served, key)
	}
	peer := t.peers[h.node]
	t.mu.Unlock()
	if peer != nil {
		peer.look() // it may be dead
	}
	if errors.Is(err, errProtocol) {
		t.stats.broken.Add(1)
		t.o.Logger.Error("a connection was ended: its node breaks the protocol", "node", h.node, "error", err)
	}
}

// serves says whether there is a connection that a node opened.
func (t *Transport) serves(node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.served[servedKey{node, laneControl}] != nil || t.served[servedKey{node, laneBulk}] != nil
}
