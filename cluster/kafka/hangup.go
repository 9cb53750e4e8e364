package kafka

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// hangUp closes a connection. A client whose very first request gets nothing but
// an orderly end takes the server for one that speaks TLS, and gives up; if
// nothing was answered yet it gets a reset instead, after which it tries again.
func hangUp(c net.Conn, answered *atomic.Bool) {
	if tcp, ok := c.(*net.TCPConn); ok && !answered.Load() {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pipeEnd is the client's end of a connection inside the process. Its other end
// can only close in good order, so the reset is made here.
type pipeEnd struct{ net.Conn }

// Read reads from the server.
func (p pipeEnd) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		err = &net.OpError{Op: "read", Net: "pipe", Err: syscall.ECONNRESET}
	}
	return n, err
}
