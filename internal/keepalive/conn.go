package keepalive

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection that knows since when its owner waits for the server. Kafka clients read only when an answer is
// due, so a read under way is a wait.
type conn struct {
	net.Conn
	server *server

	reading, writing atomic.Int64 // since when, by clock; 0 is not
	leave            sync.Once
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.reading.Store(clock())
	n, err := c.Conn.Read(b)
	c.reading.Store(0)
	if n > 0 {
		c.server.heard.Store(clock())
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Store(clock())
	defer c.writing.Store(0)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.leave.Do(func() { c.server.remove(c) })
	return err
}

// waits is how long the owner has waited for the server.
func (c *conn) waits(now int64) time.Duration {
	longest := int64(0)
	for _, since := range []int64{c.reading.Load(), c.writing.Load()} {
		if since != 0 {
			longest = max(longest, now-since)
		}
	}
	return time.Duration(longest)
}
