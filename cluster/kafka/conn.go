package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/semaphore"
)

const (
	// inFlight is how many requests of a connection may wait for their answer;
	// further ones are not read.
	inFlight = 32
	// maxControlBytes bounds requests other than Produce. Decoding makes structs
	// of them that take up to decodeFactor times their bytes, and that is what
	// they are charged.
	maxControlBytes = 4 << 20
	decodeFactor    = 16
)

// conn is one client's connection.
type conn struct {
	server *Server
	net    net.Conn
	in     *inbox // of net; the reader's, once the client has logged in
	access Access
	who    identity            // does not change once the client has logged in
	client string              // the last request's; the reader's
	topic  string              // that was last produced to; the reader's
	memory *semaphore.Weighted // what its requests may hold
	line   *line               // from the reader to the writer

	login    login                     // the writer's
	expires  atomic.Pointer[time.Time] // when the client must have logged in again, by the clock that nobody sets; nil is never
	answered atomic.Bool               // the client has got something
	served   atomic.Bool               // it has got more than answers to what it introduced itself with
}

// pending is a request that waits for its turn to be answered. Exactly one of
// its fields is set.
type pending struct {
	produce *produceCall // started; its answer comes when it is stored
	request *request     // not yet looked at
}

// call is what a handler knows beside the request.
type call struct {
	ctx  context.Context // ends with the connection
	conn *conn
	header
}

func newConn(s *Server, c net.Conn, access Access) *conn {
	return &conn{
		server: s,
		net:    c,
		in:     newInbox(c, s.inboxes),
		access: access,
		who:    access.identify(c),
		memory: semaphore.NewWeighted(int64(s.opts.MaxRequestBytes)),
		line:   newLine(),
	}
}

// run serves the connection until it ends; then no goroutine of it is left.
func (c *conn) run(serving context.Context) {
	ctx, cancel := context.WithCancelCause(serving)
	defer cancel(nil)
	// Closing is what wakes a goroutine that waits for the network.
	stop := context.AfterFunc(ctx, func() {
		c.line.end()
		c.hangUp(serving.Err() != nil)
	})
	defer stop()
	defer c.in.drop()
	defer func() {
		if cause := context.Cause(ctx); errors.Is(cause, errFrame) || errors.Is(cause, errMalformed) || errors.Is(cause, errLogin) {
			c.server.complain(c.net, cause)
		}
	}()
	if len(c.access.Mechanisms) > 0 {
		if err := c.logIn(ctx); err != nil {
			cancel(err)
			return
		}
	}

	var reader sync.WaitGroup
	reader.Go(func() { cancel(c.read(ctx)) })
	cancel(c.write(ctx))
	reader.Wait()
	c.line.abandon()
}

// hangUp ends the connection, as hangup.go says.
func (c *conn) hangUp(closing bool) {
	if c.served.Load() || c.answered.Load() && !closing {
		endInOrder(c.net)
		_ = c.net.Close()
		return
	}
	reset(c.net)
}

// ready says that a request can be answered without waiting for the disk.
func (p pending) ready() bool { return p.produce == nil || p.produce.stored.Load() }

// late says that the client of a produce request waits no longer.
func (p pending) late() bool { return p.produce != nil && !time.Now().Before(p.produce.deadline) }

// abandon drops what nobody will answer any more. A produce request goes on:
// its records are on their way to the disk.
func (p pending) abandon() {
	if p.request != nil {
		p.request.drop()
	}
}

// read takes requests off the wire until the connection ends.
func (c *conn) read(ctx context.Context) error {
	for {
		req, err := c.readRequest(ctx, c.in)
		if err != nil {
			return err
		}
		if c.expired() && !mayComeFirst(req.key) {
			req.drop()
			return fmt.Errorf("%w: the client had to log in again", errLogin)
		}
		p, err := c.start(ctx, req)
		if err != nil {
			return err
		}
		if err := c.line.put(ctx, p); err != nil {
			p.abandon()
			return err
		}
	}
}

// readRequest reads one frame into a buffer that was charged before.
func (c *conn) readRequest(ctx context.Context, in *inbox) (*request, error) {
	var length [4]byte
	var key [2]byte
	if err := in.small(length[:]); err != nil {
		return nil, err
	}
	size, err := checkSize(int32(binary.BigEndian.Uint32(length[:])), c.server.opts.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	if err := in.small(key[:]); err != nil {
		return nil, err
	}
	charge, err := c.chargeFor(int16(binary.BigEndian.Uint16(key[:])), size)
	if err != nil {
		return nil, err
	}
	if err := c.charge(ctx, charge); err != nil {
		return nil, err
	}
	r := &request{frame: frame{buf: c.server.pool.get(size), conn: c, charged: charge}}
	r.hold()
	buf := *r.buf
	if err := c.readBody(in, buf[copy(buf, key[:]):]); err != nil {
		r.drop()
		return nil, err
	}
	c.server.counts.requests.Add(1)
	c.server.counts.bytesIn.Add(uint64(size) + 4)
	if r.header, r.body, err = parseHeader(buf, c.client); err != nil {
		r.drop()
		return nil, err
	}
	c.client = r.client
	return r, nil
}

// readBody reads the rest of a frame. A client that begins a request must end it: it holds
// memory that others wait for.
func (c *conn) readBody(in *inbox, p []byte) error {
	if in.has(len(p)) {
		_, err := in.body(p)
		return err
	}
	began, timeout := time.Now(), c.server.opts.StallTimeout
	defer func() { _ = c.net.SetReadDeadline(time.Time{}) }()
	for have := 0; ; {
		now := time.Now()
		_ = c.net.SetReadDeadline(earlier(now.Add(timeout/paceChecks), began.Add(timeout)))
		n, err := in.body(p[have:])
		if have += n; err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		gone := time.Since(began)
		due := float64(len(p)) * float64(gone) / float64(timeout)
		if gone >= timeout || float64(have) < due && c.server.waiting.Load() > 0 {
			return err
		}
	}
}

// paceChecks is how often within the StallTimeout it is looked at whether a request
// would be whole by its end. A client too slow for that is not waited for while others
// wait for the memory that it holds.
const paceChecks = 60

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// chargeFor returns what the bytes of a request will cost.
func (c *conn) chargeFor(key int16, size int) (int64, error) {
	if key == int16(kmsg.Produce) {
		return int64(size), nil
	}
	if size > maxControlBytes {
		return 0, fmt.Errorf("%w: %d bytes for a request that is not Produce, allowed are %d", errFrame, size, maxControlBytes)
	}
	return min(int64(size)*decodeFactor, int64(c.server.opts.MaxRequestBytes)), nil
}

// charge waits until the connection and the server have that much memory left.
func (c *conn) charge(ctx context.Context, n int64) error {
	if err := c.memory.Acquire(ctx, n); err != nil {
		return err
	}
	if c.server.memory.TryAcquire(n) {
		return nil
	}
	c.server.waiting.Add(1)
	defer c.server.waiting.Add(-1)
	if err := c.server.memory.Acquire(ctx, n); err != nil {
		c.memory.Release(n)
		return err
	}
	return nil
}

// discharge gives back what was charged.
func (c *conn) discharge(n int64) {
	c.server.memory.Release(n)
	c.memory.Release(n)
}

// start begins a produce request at once; all others wait for their turn.
func (c *conn) start(ctx context.Context, req *request) (pending, error) {
	if req.key != int16(kmsg.Produce) {
		return pending{request: req}, nil
	}
	defer req.drop()
	if a := apis[req.key]; req.version < a.min || req.version > a.max {
		return pending{}, unsupported(req.header)
	}
	p, err := c.startProduce(ctx, req)
	return pending{produce: p}, err
}

// write answers requests in their order until the connection ends. It flushes
// before it waits, be it for the next request or within one.
func (c *conn) write(ctx context.Context) error {
	w := answerWriter{conn: c}
	for {
		p, ok, err := c.line.take(w.flush)
		if err != nil || !ok {
			return err
		}
		if p.produce != nil {
			err = c.finishProduce(ctx, &w, p.produce)
		} else {
			if err = w.flush(); err == nil {
				err = c.answer(ctx, &w, p.request)
			}
			p.request.drop()
			if err == nil && c.login.failed != nil {
				err = errors.Join(w.flush(), c.refuse(ctx))
			}
		}
		if err != nil {
			return errors.Join(err, w.flush()) // what was answered before is no part of the fault
		}
	}
}

// answer runs one request and writes its answer.
func (c *conn) answer(ctx context.Context, w *answerWriter, req *request) error {
	a, known := apis[req.key]
	if !known || req.version < a.min || req.version > a.max {
		if req.key == int16(kmsg.ApiVersions) {
			return w.message(req.header, apiVersionsTooNew())
		}
		return unsupported(req.header)
	}
	cl := &call{ctx: ctx, conn: c, header: req.header}
	if req.key == int16(kmsg.Fetch) {
		return c.fetch(cl, w, req.body)
	}
	kreq := kmsg.RequestForKey(req.key)
	kreq.SetVersion(req.version)
	if err := kreq.ReadFrom(req.body); err != nil {
		return fmt.Errorf("%w: %s version %d", errMalformed, kmsg.NameForKey(req.key), req.version)
	}
	resp := c.server.handle[req.key](cl, kreq)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if resp == nil {
		return fmt.Errorf("%w: %s version %d", errMalformed, kmsg.NameForKey(req.key), req.version)
	}
	return w.message(req.header, resp)
}

func unsupported(h header) error {
	return fmt.Errorf("%w: request %d (%s) version %d is not offered", errMalformed, h.key, kmsg.NameForKey(h.key), h.version)
}
