package kafka

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client that gets an orderly end instead of the answer to its first request takes the server for one that wants TLS or
// a login, and gives up for good. What it introduces itself with it does not count. So until an answer that counts was
// written, the end of a connection is a reset, after which clients try again: that which the server makes when it closes, and
// that which the system makes when the process is killed. Only who is turned away for a fault of its own gets the answer
// that says so, and an orderly end.

// introduces says that a request is how clients begin.
func introduces(key int16) bool {
	return key == int16(kmsg.ApiVersions) || key == int16(kmsg.SASLHandshake) || key == int16(kmsg.SASLAuthenticate)
}

// endAbruptly makes every end of the connection a reset, until endInOrder.
func endAbruptly(c net.Conn) {
	if tcp := underneath(c); tcp != nil {
		_ = tcp.SetLinger(0)
	}
}

func endInOrder(c net.Conn) {
	if tcp := underneath(c); tcp != nil {
		_ = tcp.SetLinger(-1)
	}
}

// reset ends a connection, without TLS's own word for it.
func reset(c net.Conn) {
	tcp := underneath(c)
	if tcp == nil {
		_ = c.Close()
		return
	}
	_ = tcp.SetLinger(0)
	_ = tcp.Close()
}

// underneath is the TCP connection; nil within the process.
func underneath(c net.Conn) *net.TCPConn {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	tcp, _ := c.(*net.TCPConn)
	return tcp
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
