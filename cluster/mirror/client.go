package mirror

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrClosed is why nothing can be asked any more.
var ErrClosed = errors.New("connection to the upstream is closed")

// Memory bounds what was received and is not yet released, over all clients that share it. It is safe for concurrent use.
type Memory struct {
	room  *semaphore.Weighted
	limit int64
	pool  sync.Pool // of *[]byte
}

// NewMemory returns a bound of so many bytes. A single answer may be larger; then nothing else is received.
func NewMemory(limit int64) *Memory { return &Memory{room: semaphore.NewWeighted(limit), limit: limit} }

func (m *Memory) take(ctx context.Context, n int) (*[]byte, error) {
	if err := m.room.Acquire(ctx, min(int64(n), m.limit)); err != nil {
		return nil, err
	}
	b, _ := m.pool.Get().(*[]byte)
	if b == nil || cap(*b) < n {
		grown := make([]byte, (n+64<<10)&^(64<<10-1))
		b = &grown
	}
	*b = (*b)[:n]
	return b, nil
}

func (m *Memory) give(b *[]byte) {
	m.room.Release(min(int64(len(*b)), m.limit))
	m.pool.Put(b)
}

// Answer is what came of a request. Release it.
type Answer struct {
	Status Status
	Body   []byte // until Release
	Err    error  // of the connection: there is no status

	memory *Memory
	buf    *[]byte
}

// Release gives the memory of Body back. It may be called again.
func (a *Answer) Release() {
	if a.buf != nil {
		a.memory.give(a.buf)
		a.buf, a.Body = nil, nil
	}
}

// Client asks over one connection. It is safe for concurrent use.
type Client struct {
	conn    net.Conn
	r       *bufio.Reader
	memory  *Memory
	silence time.Duration

	writeMu sync.Mutex

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan Answer // each with room for its answer; guarded by mu
	err     error                  // why the connection ended; guarded by mu
}

// NewClient returns a client, whose Run has to be called. A connection on which nothing comes for silence is given up:
// ask for Ends more often.
func NewClient(conn net.Conn, r *bufio.Reader, memory *Memory, silence time.Duration) *Client {
	return &Client{conn: conn, r: r, memory: memory, silence: silence, waiting: map[uint64]chan Answer{}}
}

// Run receives answers until the connection or ctx ends, and returns why. Everything that waits for an answer then gets
// that error. It closes the connection.
func (c *Client) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	var err error
	for err == nil {
		if err = c.conn.SetReadDeadline(time.Now().Add(c.silence)); err == nil {
			err = c.receive(ctx)
		}
	}
	_ = c.conn.Close() // an error of it changes nothing
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = fmt.Errorf("%w: %w", ErrClosed, err)
	for seq, w := range c.waiting {
		w <- Answer{Err: c.err}
		delete(c.waiting, seq)
	}
	return err
}

func (c *Client) receive(ctx context.Context) error {
	h, err := readHeader(c.r, maxAnswer)
	if err != nil {
		return err
	}
	a := Answer{Status: h.status, memory: c.memory}
	if h.status < OK || h.status > Same {
		return fmt.Errorf("%w: status %d", errProtocol, h.status)
	}
	if h.length > 0 {
		if a.buf, err = c.memory.take(ctx, int(h.length)); err != nil {
			return err
		}
		a.Body = *a.buf
		if err = c.conn.SetReadDeadline(time.Now().Add(c.silence)); err == nil { // waiting for room was not its fault
			_, err = io.ReadFull(c.r, a.Body)
		}
		if err != nil {
			a.Release()
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.waiting[h.seq]
	if !ok { // it was cancelled
		a.Release()
		return nil
	}
	delete(c.waiting, h.seq)
	w <- a
	return nil
}

// Pending is a request on its way.
type Pending struct {
	c    *Client
	seq  uint64
	done chan Answer
}

// Done receives the answer.
func (p *Pending) Done() <-chan Answer { return p.done }

// Cancel gives the request up, whether it was answered or not, unless the answer was received from Done.
func (p *Pending) Cancel() {
	p.c.mu.Lock()
	_, waits := p.c.waiting[p.seq]
	delete(p.c.waiting, p.seq)
	p.c.mu.Unlock()
	if waits {
		_ = p.c.send(kindCancel, p.seq, nil) // a connection that fails has nothing to cancel
		return
	}
	select {
	case a := <-p.done:
		a.Release()
	default:
	}
}

func (c *Client) ask(k kind, body []byte) *Pending {
	p := &Pending{c: c, done: make(chan Answer, 1)}
	c.mu.Lock()
	c.last++
	p.seq = c.last
	if err := c.err; err != nil {
		c.mu.Unlock()
		p.done <- Answer{Err: err}
		return p
	}
	c.waiting[p.seq] = p.done
	c.mu.Unlock()
	if err := c.send(k, p.seq, body); err != nil {
		_ = c.conn.Close() // Run tells everybody
	}
	return p
}

func (c *Client) send(k kind, seq uint64, body []byte) error {
	b := append(header{length: uint32(len(body)), kind: k, seq: seq}.append(nil), body...)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// wait waits for the answer to a request that must end with OK or Same.
func (p *Pending) wait(ctx context.Context) (Answer, error) {
	select {
	case a := <-p.done:
		switch {
		case a.Err != nil:
			return a, a.Err
		case a.Status == OK, a.Status == Same:
			return a, nil
		}
		defer a.Release()
		return Answer{}, fmt.Errorf("the upstream answered: %s", a.Body)
	case <-ctx.Done():
		p.Cancel()
		return Answer{}, ctx.Err()
	}
}

// Pull asks for the frames of a journal behind a raft entry: about most bytes of them.
func (c *Client) Pull(k Key, after uint64, most int) *Pending {
	p := pullRequest{k, after, min(most, maxPull)}
	return c.ask(kindPull, p.append(nil))
}

// Stretch fills buf with the bytes of a journal from a position on. They are not checked.
func (c *Client) Stretch(ctx context.Context, k Key, position uint64, buf []byte) error {
	for len(buf) > 0 {
		p := pullRequest{k, position, min(len(buf), maxStretch)}
		a, err := c.ask(kindStretch, p.append(nil)).wait(ctx)
		if err != nil {
			return err
		}
		if len(a.Body) != p.most {
			a.Release()
			return fmt.Errorf("%w: %d bytes for a stretch of %d", errProtocol, len(a.Body), p.most)
		}
		n := copy(buf, a.Body)
		a.Release()
		buf, position = buf[n:], position+uint64(n)
	}
	return nil
}

// Ends asks how far journals go, of which that has changed since it was asked last.
func (c *Client) Ends(ctx context.Context) ([]End, error) {
	a, err := c.ask(kindEnds, nil).wait(ctx)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	return parseEnds(a.Body)
}

// Describe asks for a description that is not older than floor and not what is known. ok is false if there was none for
// some time: ask again.
func (c *Client) Describe(ctx context.Context, floor uint64, known [32]byte) (d Description, ok bool, err error) {
	a, err := c.ask(kindDescribe, append(binary.LittleEndian.AppendUint64(nil, floor), known[:]...)).wait(ctx)
	if err != nil || a.Status == Same {
		return d, false, err
	}
	defer a.Release()
	if len(a.Body) < 40 {
		return d, false, fmt.Errorf("%w: description of %d bytes", errProtocol, len(a.Body))
	}
	d.Applied, d.Sum = binary.LittleEndian.Uint64(a.Body), [32]byte(a.Body[8:40])
	d.Body = append(d.Body, a.Body[40:]...)
	return d, true, nil
}
