package kafka

import (
	"net"

	"github.com/daybook-data/daybook/storage"
)

// bounceBytes is how much is copied at once for a connection that needs a copy.
const bounceBytes = 64 << 10

// writePieces writes buffers of which some are the journal's own. A TCP socket
// takes them from where they lie: nothing is copied here, and if the disk cannot
// read a page any more the kernel's write fails. Other connections (TLS, inside
// the process) touch the bytes in goroutines where that would end the process,
// so they get a copy that was made under guard.
func (s *Server) writePieces(c net.Conn, pieces net.Buffers) error {
	if tcp, ok := c.(*net.TCPConn); ok {
		_, err := pieces.WriteTo(tcp)
		return err
	}
	buf := s.pool.get(bounceBytes)
	defer s.pool.put(buf)
	bounce := *buf
	for len(pieces) > 0 {
		n := 0
		if err := storage.Guard(func() error { n, pieces = gatherBytes(bounce, pieces); return nil }); err != nil {
			return err
		}
		if _, err := c.Write(bounce[:n]); err != nil {
			return err
		}
	}
	return nil
}

// gatherBytes fills b from the pieces and returns what is left of them.
func gatherBytes(b []byte, pieces net.Buffers) (n int, rest net.Buffers) {
	for len(pieces) > 0 && n < len(b) {
		k := copy(b[n:], pieces[0])
		n += k
		if pieces[0] = pieces[0][k:]; len(pieces[0]) == 0 {
			pieces = pieces[1:]
		}
	}
	return n, pieces
}
