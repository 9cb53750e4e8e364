package sim_test

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// connRoom is how much a connection takes that the other side has not read.
const connRoom = 256 << 10

// signal wakes all who wait for a change.
type signal struct{ c chan struct{} }

// wait returns what the next raise closes.
func (s *signal) wait() chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) raise() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// pair is a connection: two streams. A cut link holds its stream back, as TCP does; what it held comes when it is mended.
type pair struct {
	n       *network
	streams [2]*stream // to the machine that was connected to, and back
	ends    [2]string
}

// reset ends the connection on both sides at once.
func (p *pair) reset() {
	for _, s := range p.streams {
		s.mu.Lock()
		s.err = syscall.ECONNRESET
		s.changed.raise()
		s.mu.Unlock()
	}
}

// lose makes the connection one to a machine without power: nothing more is heard of it.
func (p *pair) lose() {
	for _, s := range p.streams {
		s.mu.Lock()
		s.lost = true
		s.changed.raise()
		s.mu.Unlock()
	}
}

// stream is one direction of a connection.
type stream struct {
	n        *network
	from, to string

	mu      sync.Mutex // guards all below
	pieces  []piece
	bytes   int
	ended   bool  // the writer closed
	lost    bool  // nothing passes any more
	err     error // of both sides
	changed signal
}

type piece struct {
	at   time.Time
	data []byte
}

// deadline is that of a connection's reads or writes.
type deadline struct {
	mu      sync.Mutex
	at      time.Time
	changed signal
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	d.changed.raise()
}

func (d *deadline) get() (time.Time, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at, d.changed.wait()
}

// conn is one side of a pair.
type conn struct {
	*pair
	in, out       *stream
	read, written deadline
	once          sync.Once
	closed        chan struct{}
}

var _ net.Conn = (*conn)(nil)

func (n *network) connect(from, to string) (client, server *conn) {
	p := &pair{n: n, ends: [2]string{from, to}}
	p.streams = [2]*stream{{n: n, from: from, to: to}, {n: n, from: to, to: from}}
	client = &conn{pair: p, in: p.streams[1], out: p.streams[0], closed: make(chan struct{})}
	server = &conn{pair: p, in: p.streams[0], out: p.streams[1], closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range p.ends {
		n.pairs[id] = append(n.pairs[id], p)
	}
	return client, server
}

// pause waits until something changed that a blocked operation may go on for.
func (c *conn) pause(s *stream, d *deadline, changed chan struct{}, at time.Time) error {
	until, moved := d.get()
	now := time.Now()
	if !until.IsZero() && !until.After(now) {
		return os.ErrDeadlineExceeded
	}
	var timer <-chan time.Time
	if first := earlier(until, at); !first.IsZero() {
		t := time.NewTimer(first.Sub(now))
		defer t.Stop()
		timer = t.C
	}
	held := s.n.severed(s.from, s.to)
	if held == nil {
		held = s.n.cold(s.from, s.to)
	}
	select {
	case <-changed:
	case <-moved:
	case <-held: // nil, if nothing is held back
	case <-timer:
	case <-c.closed:
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for s := c.in; ; {
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		default:
		}
		open := s.n.severed(s.from, s.to) == nil && s.n.cold(s.from, s.to) == nil
		s.mu.Lock()
		if s.err != nil {
			defer s.mu.Unlock()
			return 0, s.err
		}
		var at time.Time
		if len(s.pieces) > 0 && open && !s.lost {
			if at = s.pieces[0].at; !at.After(time.Now()) {
				defer s.mu.Unlock()
				return s.take(b), nil
			}
		}
		if s.ended && len(s.pieces) == 0 && open && !s.lost {
			defer s.mu.Unlock()
			return 0, io.EOF
		}
		changed := s.changed.wait()
		s.mu.Unlock()
		if err := c.pause(s, &c.read, changed, at); err != nil {
			return 0, err
		}
	}
}

// take reads what has arrived first. The caller holds mu.
func (s *stream) take(b []byte) int {
	n := copy(b, s.pieces[0].data)
	if s.pieces[0].data = s.pieces[0].data[n:]; len(s.pieces[0].data) == 0 {
		s.pieces = s.pieces[1:]
	}
	s.bytes -= n
	s.changed.raise()
	return n
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	done := 0
	for s := c.out; done < len(b); {
		select {
		case <-c.closed:
			return done, net.ErrClosed
		default:
		}
		s.mu.Lock()
		if s.err != nil {
			defer s.mu.Unlock()
			return done, s.err
		}
		if n := min(connRoom-s.bytes, len(b)-done); n > 0 {
			s.put(b[done : done+n])
			done += n
			s.mu.Unlock()
			continue
		}
		changed := s.changed.wait()
		s.mu.Unlock()
		if err := c.pause(s, &c.written, changed, time.Time{}); err != nil {
			return done, err
		}
	}
	return done, nil
}

// put sends bytes. The caller holds mu.
func (s *stream) put(b []byte) {
	s.n.mu.Lock()
	at := time.Now().Add(s.n.delay(s.n.link(s.from, s.to)))
	s.n.mu.Unlock()
	if k := len(s.pieces); k > 0 && at.Before(s.pieces[k-1].at) {
		at = s.pieces[k-1].at
	}
	s.pieces = append(s.pieces, piece{at, append([]byte(nil), b...)})
	s.bytes += len(b)
	s.changed.raise()
}

// Close implements net.Conn. The other side reads what was sent before it.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.out.mu.Lock()
		c.out.ended = true
		c.out.changed.raise()
		c.out.mu.Unlock()
		c.in.mu.Lock()
		if c.in.err == nil && !c.in.lost {
			c.in.err = syscall.EPIPE // nobody reads what the other side writes
		}
		c.in.changed.raise()
		c.in.mu.Unlock()
		c.n.forget(c.pair)
	})
	return nil
}

func (n *network) forget(p *pair) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range p.ends {
		if !n.off[id] { // else the machine resets it when it has power again
			n.pairs[id] = slices.DeleteFunc(n.pairs[id], func(q *pair) bool { return p == q })
		}
	}
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return addr(c.out.from) }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return addr(c.out.to) }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.written.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { c.read.set(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { c.written.set(t); return nil }

// addr is a machine's address.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "sim" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }

// listener is where a process can be connected to.
type listener struct {
	id    string
	conns chan net.Conn
	once  sync.Once
	end   chan struct{}
}

var _ net.Listener = (*listener)(nil)

func newListener(id string) *listener {
	return &listener{id: id, conns: make(chan net.Conn, 16), end: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.end) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return addr(l.id) }

// dial connects a machine to another, through whatever is in the way.
func (n *network) dial(ctx context.Context, from, to string) (net.Conn, error) {
	for {
		held := n.severed(from, to)
		for _, c := range []chan struct{}{n.severed(to, from), n.cold(from, to)} {
			if held == nil {
				held = c
			}
		}
		n.mu.Lock()
		h, off, d := n.hosts[to], n.off[to], 2*n.delay(n.link(from, to))
		n.mu.Unlock()
		if off || held != nil { // what asks for a connection is lost; it is asked again
			select {
			case <-held:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if h == nil || h.listener == nil {
			return nil, &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
		}
		client, server := n.connect(from, to)
		select {
		case h.listener.conns <- server:
			return client, nil
		case <-h.listener.end:
			client.reset()
			return nil, &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
		case <-ctx.Done():
			client.reset()
			return nil, ctx.Err()
		}
	}
}
