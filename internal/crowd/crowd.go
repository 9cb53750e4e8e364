// Package crowd bounds how many connections a listener holds, so that whoever opens them and asks nothing does not take
// the descriptors that the rest of the process needs: a journal, say, which cannot begin a segment without one.
package crowd

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Listener is a listener that lets in only so many at a time and closes the connections of all others at once. It is safe
// for concurrent use.
type Listener struct {
	net.Listener
	room   chan struct{}
	turned func()

	crowded atomic.Bool
}

// Share is the most connections that one in so many of the files that the process may open allows: no more than most, no
// fewer than one.
func Share(most int, oneIn uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(uint64(most), max(limit.Cur/oneIn, 1)))
}

// New returns a listener that holds no more than most connections of l. turned, if not nil, is called with the first that
// finds no room, and again only after there was room in between.
func New(l net.Listener, most int, turned func()) *Listener {
	return &Listener{Listener: l, room: make(chan struct{}, most), turned: turned}
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
			l.crowded.Store(false)
			return &guest{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = c.Close()
			if !l.crowded.Swap(true) && l.turned != nil {
				l.turned()
			}
		}
	}
}

// guest is a connection that makes room when it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
