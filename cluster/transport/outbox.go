package transport

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// maxQueued bounds the frames that wait for a connection. Requests are bounded by their senders; only a peer that asks
// and does not read the answers gets here.
const maxQueued = 8192

// outgoing is a frame, or a request that goes in several.
type outgoing struct {
	lane   GroupID // of one lane all go in order
	header header
	fixed  []byte   // the body's fixed part
	pieces [][]byte // what follows it, cut into frames of kind more
	rest   int      // bytes of pieces not yet written
	begun  bool
	sent   func() // called once when the bytes are no longer needed, written or not; may be nil, must not block
}

// outbox is the writing side of a connection.
type outbox struct {
	conn    net.Conn
	timeout time.Duration
	stats   *counters
	wake    chan struct{}

	mu     sync.Mutex // guards all below
	lanes  map[GroupID]*lane
	ring   []*lane // lanes that have something, in turn
	queued int
	err    error // why nothing is accepted any more
}

type lane struct {
	id    GroupID
	items []*outgoing
}

func newOutbox(conn net.Conn, timeout time.Duration, stats *counters) *outbox {
	return &outbox{conn: conn, timeout: timeout, stats: stats, wake: make(chan struct{}, 1), lanes: map[GroupID]*lane{}}
}

// push queues o. If it returns an error, sent is not called.
func (q *outbox) push(o *outgoing) error {
	for _, p := range o.pieces {
		o.rest += len(p)
	}
	q.mu.Lock()
	if q.err == nil && q.queued >= maxQueued {
		q.mu.Unlock()
		q.close(errProtocol)
		return errProtocol
	}
	if q.err != nil {
		defer q.mu.Unlock()
		return q.err
	}
	l := q.lanes[o.lane]
	if l == nil {
		l = &lane{id: o.lane}
		q.lanes[o.lane] = l
		q.ring = append(q.ring, l)
	}
	l.items = append(l.items, o)
	q.queued++
	q.mu.Unlock()
	q.poke()
	return nil
}

// close ends the outbox and the connection. The first error stays.
func (q *outbox) close(err error) {
	q.mu.Lock()
	if q.err != nil {
		q.mu.Unlock()
		return
	}
	q.err = err
	lanes := q.lanes
	q.lanes, q.ring = nil, nil
	q.mu.Unlock()
	_ = q.conn.Close() // nobody waits for what it would say
	for _, l := range lanes {
		for _, o := range l.items {
			o.done()
		}
	}
	q.poke()
}

func (q *outbox) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (o *outgoing) done() {
	if o.sent != nil {
		o.sent()
	}
}

// run writes until the connection fails or the outbox is closed, and returns why it ended.
func (q *outbox) run() error {
	write := q.writer()
	for {
		bufs, finished, begun, err := q.gather()
		if err != nil {
			return err
		}
		if len(bufs) == 0 {
			<-q.wake
			continue
		}
		n, err := write(bufs)
		q.stats.bytesSent.Add(uint64(n))
		q.stats.framesSent.Add(uint64(begun))
		for _, o := range finished {
			o.done()
		}
		if err != nil {
			q.close(err)
			return err
		}
	}
}

// writer returns the function that writes with the deadline. Over TCP the kernel takes the pieces from where they lie.
func (q *outbox) writer() func(net.Buffers) (int64, error) {
	if _, ok := q.conn.(*tls.Conn); !ok {
		return func(bufs net.Buffers) (int64, error) {
			if err := q.conn.SetWriteDeadline(time.Now().Add(q.timeout)); err != nil {
				return 0, err
			}
			return bufs.WriteTo(q.conn)
		}
	}
	buffered := bufio.NewWriterSize(q.conn, 64<<10) // one record for many small pieces
	return func(bufs net.Buffers) (n int64, err error) {
		if err := q.conn.SetWriteDeadline(time.Now().Add(q.timeout)); err != nil {
			return 0, err
		}
		err = storage.Guard(func() error { // here it is we who touch the journal's pages
			for _, b := range bufs {
				m, err := buffered.Write(b)
				n += int64(m)
				if err != nil {
					return err
				}
			}
			return buffered.Flush()
		})
		return n, err
	}
}

// gather takes about chunkBytes off the queue, of each lane in turn.
func (q *outbox) gather() (bufs net.Buffers, finished []*outgoing, frames int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for room := chunkBytes; len(q.ring) > 0; {
		l := q.ring[0]
		o := l.items[0]
		if frames > 0 && (room <= 0 || min(o.rest, chunkBytes) > room) {
			break
		}
		q.ring[0] = nil
		q.ring = q.ring[1:]
		var n int
		bufs, n = o.take(bufs)
		room -= n
		frames++
		if o.rest == 0 {
			finished = append(finished, o)
			l.items[0] = nil
			l.items = l.items[1:]
			q.queued--
		}
		if len(l.items) > 0 {
			q.ring = append(q.ring, l)
		} else {
			delete(q.lanes, l.id)
		}
	}
	return bufs, finished, frames, q.err
}

// take adds the next frame of o.
func (o *outgoing) take(bufs net.Buffers) (net.Buffers, int) {
	n := min(o.rest, chunkBytes)
	h := o.header
	head := make([]byte, headerBytes, headerBytes+len(o.fixed))
	if o.begun {
		h.kind, h.flags = kindMore, 0
	} else {
		head = append(head, o.fixed...)
	}
	h.length = uint32(len(head) - headerBytes + n)
	h.put(head)
	o.begun = true
	bufs = append(bufs, head)
	size := len(head) + n
	o.rest -= n
	for n > 0 {
		p := o.pieces[0]
		if len(p) > n {
			bufs, o.pieces[0] = append(bufs, p[:n]), p[n:]
			break
		}
		bufs, o.pieces = append(bufs, p), o.pieces[1:]
		n -= len(p)
	}
	return bufs, size
}
