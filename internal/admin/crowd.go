package admin

import (
	"net"
	"sync"
	"syscall"
)

// most is how many connections are held at a time on one address: it is for a few who measure and ask.
const most = 128

// room is most, or an eighth of the files that the process may open if that is less: a journal that can't begin a segment
// ends.
func room() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(most, max(limit.Cur/8, 1)))
}

// crowd is a listener that lets in only so many at a time and closes the connections of all others at once.
type crowd struct {
	net.Listener
	room chan struct{}
}

func newCrowd(l net.Listener) *crowd { return &crowd{Listener: l, room: make(chan struct{}, room())} }

// Accept returns the next connection that there is room for.
func (l *crowd) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			return &guest{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = c.Close()
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
