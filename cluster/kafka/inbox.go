package kafka

import (
	"io"
	"net"
	"syscall"
)

const (
	// inboxBytes is how much one read takes off a socket: small requests come in bursts.
	inboxBytes = 64 << 10
	// pipeBytes is the buffer of a connection that is no socket.
	pipeBytes = 4 << 10
)

// inbox reads requests off a connection. It belongs to the connection's reader goroutine.
//
// Idle connections are many, so one that waits for its client holds no buffer: a socket is read into a shared one, taken
// only while there is something to read, and given back before the next wait. A client that sends half a request
// occupies the frame that it was charged for, and nothing else.
type inbox struct {
	net  net.Conn
	raw  syscall.RawConn // nil if net is no socket
	pool inboxPool
	buf  *[inboxBytes]byte
	own  []byte // where raw is nil
	rest []byte // read, not yet taken; part of buf or own
	try  func(fd uintptr) bool
	err  error // of the last try
}

// inboxPool keeps the buffers that sockets are read into. They are held for as long as it takes to empty one, so there
// are few: one for each thread that is in the middle of that. Unlike a sync.Pool this one keeps them through a garbage
// collection: making them anew was four tenths of all bytes allocated under a load of small requests.
type inboxPool chan *[inboxBytes]byte

// keptInboxes is how many buffers are kept while nobody uses them.
const keptInboxes = 64

func (p inboxPool) get() *[inboxBytes]byte {
	select {
	case b := <-p:
		return b
	default:
		return new([inboxBytes]byte)
	}
}

func (p inboxPool) put(b *[inboxBytes]byte) {
	select {
	case p <- b:
	default:
	}
}

func newInbox(c net.Conn, pool inboxPool) *inbox {
	b := &inbox{net: c, pool: pool}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			b.raw, b.try = raw, b.tryRead
			return b
		}
	}
	b.own = make([]byte, pipeBytes)
	return b
}

// small waits for a few bytes and reads them to p.
func (b *inbox) small(p []byte) error {
	for have := 0; have < len(p); {
		if len(b.rest) == 0 {
			if err := b.fill(); err != nil {
				return err
			}
		}
		have += b.take(p[have:])
	}
	return nil
}

// body fills p, which may be large, and says how much of it is read if it can't.
func (b *inbox) body(p []byte) (int, error) {
	n := b.take(p)
	more, err := io.ReadFull(b.net, p[n:])
	return n + more, err
}

// has says whether the next n bytes are there without waiting.
func (b *inbox) has(n int) bool { return len(b.rest) >= n }

// take moves what is buffered to p.
func (b *inbox) take(p []byte) int {
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.drop()
	}
	return n
}

// drop gives the shared buffer back; what it held is lost.
func (b *inbox) drop() {
	b.rest = nil
	if b.buf != nil {
		b.pool.put(b.buf)
		b.buf = nil
	}
}

// fill waits for bytes; nothing is buffered when it is called.
func (b *inbox) fill() error {
	if b.raw == nil {
		n, err := b.net.Read(b.own)
		if b.rest = b.own[:n]; n > 0 {
			return nil
		}
		return err
	}
	if err := b.raw.Read(b.try); err != nil { // closed, or past its deadline
		return err
	}
	return b.err
}

// tryRead reads what the socket has; false if that is nothing yet.
func (b *inbox) tryRead(fd uintptr) bool {
	b.buf = b.pool.get()
	n, err := syscall.Read(int(fd), b.buf[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), b.buf[:])
	}
	if n > 0 {
		b.rest, b.err = b.buf[:n], nil
		return true
	}
	b.drop()
	if err == syscall.EAGAIN { // as it is: this is the hot path
		return false
	}
	if b.err = err; err == nil {
		b.err = io.EOF
	}
	return true
}
