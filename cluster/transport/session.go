package transport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// queueTimes is by how much longer than for an answer a request may wait to be written.
const queueTimes = 5

// session is a node's way of asking a peer: two connections that it opened. If either ends, so does the session.
type session struct {
	peer          *peer
	address       string // where the peer was reached
	instance      uint64 // of its process; 0: it does not say
	control, bulk *outbox
	readers       [2]*bufio.Reader
	pulses        *pulser
	heard         atomic.Int64 // the moment when the last bytes came
	ended         chan struct{}

	mu    sync.Mutex // guards all below
	calls map[uint64]*call
	last  uint64 // sequence number
	err   error  // why it ended
}

// call is a request that waits for its answer.
type call struct {
	deadline time.Time           // guarded by session.mu
	flow     *flow               // of an append
	taken    func(n int)         // the peer read n bytes of the snapshot; may be nil
	done     func(answer, error) // called once, by the goroutine that has the outcome, after which the call may be used again; must not block
}

// open registers a request and returns its number.
func (s *session) open(c *call, timeout time.Duration) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, s.err)
	}
	s.last++
	c.deadline = time.Now().Add(timeout)
	s.calls[s.last] = c
	return s.last, nil
}

// extend moves a request's deadline.
func (s *session) extend(seq uint64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[seq]; c != nil {
		c.deadline = time.Now().Add(timeout)
	}
}

// finish ends a request, if it has not ended.
func (s *session) finish(seq uint64, a answer, err error) {
	s.mu.Lock()
	c := s.calls[seq]
	delete(s.calls, seq)
	s.mu.Unlock()
	if c != nil {
		c.done(a, err)
	}
}

// request sends a small request on the control connection and waits for the answer.
func (s *session) request(kind frameKind, flags uint8, body []byte) (answer, error) {
	w := newWaiter()
	timeout := s.peer.t.o.Timeout
	seq, err := s.open(&call{done: w.done}, timeout)
	if err != nil {
		return answer{}, err
	}
	if err := s.control.push(&outgoing{header: header{kind: kind, flags: flags, seq: seq}, fixed: body}); err != nil {
		s.finish(seq, answer{}, err)
	}
	return w.wait()
}

// pulse sends a heartbeat with the others of its window. instance is that of the group which acknowledged what the
// heartbeat stands for, 0 if it stands for itself.
func (s *session) pulse(to memberAddress, term, instance uint64, c *call) error {
	seq, err := s.open(c, s.peer.t.o.Timeout)
	if err != nil {
		return err
	}
	s.peer.t.stats.pulses.Add(1)
	err = s.pulses.add(func(b []byte) []byte {
		return putU64(putU64(append(putU64(b, seq), to[:]...), term), instance)
	})
	if err != nil {
		s.finish(seq, answer{}, err)
	}
	return nil
}

// waiter turns a call's outcome into a return.
type waiter struct{ c chan outcome }

type outcome struct {
	answer answer
	err    error
}

func newWaiter() waiter { return waiter{make(chan outcome, 1)} }

func (w waiter) done(a answer, err error) { w.c <- outcome{a, err} }

func (w waiter) wait() (answer, error) {
	o := <-w.c // every call ends: by its answer, its deadline, or with the session
	if o.err != nil {
		return answer{}, o.err
	}
	return o.answer, o.answer.err()
}

// ErrNotOpen refuses a request of a group that the peer has not opened: yet, as it has just got a copy, any more, or another time.
var ErrNotOpen = errors.New("peer has not opened the group")

// err is why the request was not carried out, nil if it was.
func (a answer) err() error {
	switch {
	case a.status == statusOK:
		return nil
	case a.status == statusFailed:
		return fmt.Errorf("peer refuses the request: %s", a.text)
	case a.status == statusNoGroup:
		return ErrNotOpen
	case a.status == statusOther:
		return fmt.Errorf("%w: it has opened it anew, or another copy", ErrNotOpen)
	}
	return fmt.Errorf("%v", a.status)
}

// run serves the session until it ends, and returns why.
func (s *session) run() error {
	var all sync.WaitGroup
	all.Go(func() { s.end(s.control.run()) })
	all.Go(func() { s.end(s.bulk.run()) })
	for lane, out := range []*outbox{s.control, s.bulk} {
		all.Go(func() { s.end(s.read(out.conn, s.readers[lane])) })
	}
	s.sweep()
	all.Wait()
	return s.err
}

// end ends the session: whatever waits fails.
func (s *session) end(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	calls := s.calls
	s.calls = nil
	s.mu.Unlock()
	s.pulses.stop()
	s.control.close(err)
	s.bulk.close(err)
	close(s.ended)
	for _, c := range calls {
		c.done(answer{}, fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
}

// sweep ends what waits for too long, and sees that there is something to hear on both sides.
func (s *session) sweep() {
	o := &s.peer.t.o
	tick := time.NewTicker(min(o.Timeout/16, o.every()))
	defer tick.Stop()
	for asked := time.Now(); ; {
		select {
		case <-s.ended:
			return
		case <-tick.C:
		}
		now := time.Now()
		s.expire(now)
		if silent := s.peer.t.passed(s.heard.Load()); o.Silence > 0 && silent > o.Silence {
			s.end(fmt.Errorf("%w: silent for %v", ErrTimeout, silent.Round(time.Millisecond)))
			return
		}
		if now.Sub(asked) >= o.every() {
			asked = now
			_ = s.control.push(&outgoing{header: header{kind: kindPulses}}) // an error ends the session elsewhere
			_ = s.bulk.push(&outgoing{header: header{kind: kindPulses}})
		}
	}
}

func (s *session) expire(now time.Time) {
	var late []*call
	s.mu.Lock()
	for seq, c := range s.calls {
		if now.After(c.deadline) && (c.flow == nil || s.peer.t.passed(c.flow.answered.Load()) > s.peer.t.o.Timeout) {
			delete(s.calls, seq)
			late = append(late, c)
		}
	}
	s.mu.Unlock()
	for _, c := range late {
		s.peer.t.stats.timeouts.Add(1)
		c.done(answer{}, ErrTimeout)
	}
}

// read takes the answers off a connection.
func (s *session) read(conn net.Conn, r *bufio.Reader) error {
	var body []byte
	for {
		if err := conn.SetReadDeadline(time.Now().Add(s.peer.t.o.idle())); err != nil {
			return err
		}
		h, err := readHeader(r)
		if err != nil {
			return err
		}
		switch h.kind {
		case kindAnswer, kindBeats, kindTaken, kindReply:
		default:
			return fmt.Errorf("%w: frame of kind %d for an answer", errProtocol, h.kind)
		}
		if cap(body) < int(h.length) {
			body = make([]byte, max(int(h.length), 4<<10))
		}
		body = body[:h.length]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		s.hear(len(body) + headerBytes)
		if err := s.take(h, body); err != nil {
			return err
		}
	}
}

func (s *session) hear(n int) {
	now := s.peer.t.now()
	s.heard.Store(now)
	s.peer.heard.Store(now)
	s.peer.t.stats.bytesReceived.Add(uint64(n))
	s.peer.t.stats.framesReceived.Add(1)
}

func (s *session) take(h header, body []byte) error {
	switch h.kind {
	case kindAnswer:
		s.finish(h.seq, parseAnswer(h, body), nil)
	case kindReply:
		s.finish(h.seq, parseReply(body), nil)
	case kindTaken:
		s.mu.Lock()
		c := s.calls[h.seq]
		s.mu.Unlock()
		if c != nil && c.taken != nil {
			c.taken(int(binary.LittleEndian.Uint32(body)))
		}
	case kindBeats:
		if len(body)%beatBytes != 0 {
			return fmt.Errorf("%w: %d bytes of beats", errProtocol, len(body))
		}
		for r := (bodyReader{body}); len(r.b) > 0; {
			seq, a := parseBeat(&r)
			s.finish(seq, a, nil)
		}
	}
	return nil
}

// readHeader reads and checks a frame's header.
func readHeader(r io.Reader) (header, error) {
	var b [headerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return parseHeader(b[:])
}
