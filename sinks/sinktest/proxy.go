package sinktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a sink and its real destination, and breaks the line in the ways
// that lines break. It passes bytes and knows no protocol. Its methods are safe for
// concurrent use.
type Proxy struct {
	// Addr is where the sink is to connect.
	Addr string

	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]bool
	fault   fault
	replies int // bytes of replies that still pass, in cutReplies
}

type fault int

const (
	sound      fault = iota
	cut              // connections end at once
	stall            // requests reach the destination, replies don't come back
	cutReplies       // a part of the reply comes back, then the connection ends
)

// NewProxy starts a proxy for the destination at target, host:port; it ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Cut ends all connections, and every new one as soon as it is made.
func (p *Proxy) Cut() { p.set(cut, 0) }

// Stall swallows replies: requests still reach the destination.
func (p *Proxy) Stall() { p.set(stall, 0) }

// CutReplies lets n more bytes of replies pass, then ends their connection and is sound
// again. The request as a whole has reached the destination.
func (p *Proxy) CutReplies(n int) { p.set(cutReplies, n) }

// Mend passes everything again. Connections that lost something are ended.
func (p *Proxy) Mend() { p.set(sound, 0) }

func (p *Proxy) set(f fault, replies int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f == cut || p.fault == stall {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	p.fault, p.replies = f, replies
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(client, server) {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.wg.Go(func() { p.pass(server, client, false) })
		p.wg.Go(func() { p.pass(client, server, true) })
	}
}

// add registers a pair of connections, or reports that the line is cut.
func (p *Proxy) add(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == cut {
		return false
	}
	for _, c := range pair {
		p.conns[c] = true
	}
	return true
}

// pass copies from one connection to the other until either ends, then ends both.
func (p *Proxy) pass(to, from net.Conn, replies bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			pass, end := n, false
			if replies {
				pass, end = p.admit(n)
			}
			if _, e := to.Write(buf[:pass]); e != nil || end {
				err = errors.Join(io.ErrClosedPipe, e)
			}
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	_ = to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
	delete(p.conns, to)
}

// admit returns how many of n bytes of a reply may pass, and whether the line ends then.
func (p *Proxy) admit(n int) (pass int, end bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.fault {
	case stall:
		return 0, false
	case cutReplies:
		pass = min(n, p.replies)
		p.replies -= pass
		if p.replies > 0 {
			return pass, false
		}
		p.fault = sound
		return pass, true
	}
	return n, false
}
