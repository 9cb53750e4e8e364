// Package cable is a wire between two processes or parts of one, on the loopback interface, for tests: it can be cut,
// slowed down, or made to swallow what is sent in one direction.
package cable

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Cable forwards connections to a target, and fails the test if it cannot listen. It is safe for concurrent use.
type Cable struct {
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

// New returns a cable to an address. It does not listen before Open.
func New(t testing.TB, target string) *Cable {
	return &Cable{t: t, target: target, listening: "127.0.0.1:0", conns: map[net.Conn]bool{}}
}

// Open makes the wire's end accept, and returns its address.
func (c *Cable) Open() string {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		l := Listen(c.t, c.listening)
		c.listener = l
		c.listening = c.listener.Addr().String()
		c.running.Go(func() { c.accept(l) })
	}
	return c.listening
}

// Close refuses connections and ends those there are.
func (c *Cable) Close() {
	c.mu.Lock()
	l := c.listener
	c.listener = nil
	c.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	c.Cut()
	c.running.Wait()
}

// Cut ends all connections; new ones can be made.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
}

// Swallow loses what is sent to the target from now on, or what comes back, as a pulled plug does; with false it does not.
func (c *Cable) Swallow(to, from bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = [2]bool{to, from}
}

// Slow delays everything by a time, and lets so many bytes through in a second; 0: as fast as it goes.
func (c *Cable) Slow(delay time.Duration, perSecond int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay, c.perSecond = delay, perSecond
}

func (c *Cable) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.running.Go(func() { c.forward(conn) })
	}
}

func (c *Cable) forward(conn net.Conn) {
	target, err := net.DialTimeout("tcp", c.target, 5*time.Second)
	if err != nil {
		_ = conn.Close()
		return
	}
	c.mu.Lock()
	c.conns[conn], c.conns[target] = true, true
	c.mu.Unlock()
	var both sync.WaitGroup
	for direction, ends := range [2][2]net.Conn{{target, conn}, {conn, target}} {
		both.Go(func() {
			c.pump(ends[0], ends[1], direction)
			_ = conn.Close()
			_ = target.Close()
		})
	}
	both.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	delete(c.conns, target)
}

// pump copies until an end is closed. What is lost is lost for good: a connection that lost bytes is never mended.
func (c *Cable) pump(to, from net.Conn, direction int) {
	buf := make([]byte, 64<<10)
	gap := false
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		lost, wait := c.lost[direction], c.delay
		if c.perSecond > 0 {
			wait += time.Duration(n) * time.Second / time.Duration(c.perSecond)
		}
		c.mu.Unlock()
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

// Listen listens on an address, and fails the test if it cannot.
func Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
