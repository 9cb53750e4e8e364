// Package connlimit bounds how many connections a listener holds, so that clients that open connections and ask nothing do
// not take the file descriptors that the rest of the process needs: a journal cannot begin a segment without one.
package connlimit

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Listener holds a limited number of connections at a time and closes all others as soon as they are accepted. It is safe
// for concurrent use.
type Listener struct {
	net.Listener
	room   chan struct{} // holds a value for each open connection
	onFull func()

	full atomic.Bool // a connection was closed, and there was no room since
}

// Share returns how many connections a listener may hold if it gets one in oneIn of the files that the process may open:
// at least 1, at most most.
func Share(most int, oneIn uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(uint64(most), max(limit.Cur/oneIn, 1)))
}

// New returns a listener that holds at most most connections of l. onFull, if not nil, is called when a connection finds
// no room, and again only after there was room in between. It must not block.
func New(l net.Listener, most int, onFull func()) *Listener {
	return &Listener{Listener: l, room: make(chan struct{}, most), onFull: onFull}
}

// Accept returns the next connection that there is room for.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			l.full.Store(false)
			return &conn{Conn: c, release: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = c.Close()
			if !l.full.Swap(true) && l.onFull != nil {
				l.onFull()
			}
		}
	}
}

// conn is a connection that makes room when it is closed.
type conn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
