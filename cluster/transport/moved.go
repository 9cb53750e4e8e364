package transport

import (
	"context"
	"errors"
	"syscall"
)

// A node that comes back at another address is looked for where it says it is: in its hello, or as the node that answered
// at an address where it was greeted. That it is the node is proved there like anywhere else: by its id, and with TLS by a
// certificate for that address.

// met takes over where who said hello is reached.
func (t *Transport) met(h hello) {
	if h.address != "" {
		t.LookAt(h.node, h.address)
	}
	if p, err := t.peer(h.node); err == nil && !p.alive() {
		p.look() // it is there again
	}
}

// LookAt looks for a known peer at an address, too, if it is not connected: somebody has seen it there.
func (t *Transport) LookAt(id, address string) {
	if p, err := t.peer(id); err == nil {
		p.found(address)
	}
}

// found notes where the peer was seen last, and looks for it there if there is no session. Where SetPeer says that it is
// stays the second choice.
func (p *peer) found(address string) {
	p.mu.Lock()
	news := p.seen != address
	p.seen = address
	p.mu.Unlock()
	if news {
		p.look()
	}
}

// dial makes a session, wherever the peer is.
func (p *peer) dial() (*session, error) {
	p.mu.Lock()
	address, seen := p.address, p.seen
	p.mu.Unlock()
	if seen == "" || seen == address {
		return p.dialAt(address)
	}
	s, err := p.dialAt(seen)
	if err == nil {
		return s, nil
	}
	s, second := p.dialAt(address)
	if errors.Is(second, syscall.ECONNREFUSED) {
		return s, err // only if neither place has a process that listens, the peer is dead
	}
	return s, second
}

// Greet finds out who is at an address, tells it where this node is, and looks for it there from then on, if it is a known
// peer. It returns the id of the node, which may be this one, or a *RefusedError that says why that one does not want this
// one: they belong to different clusters, say.
func (t *Transport) Greet(ctx context.Context, address string) (node string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	c, err := t.connect(ctx, "", address, laneStranger)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if c.node != t.o.Node {
		t.LookAt(c.node, address)
	}
	return c.node, nil
}
