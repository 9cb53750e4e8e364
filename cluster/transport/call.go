package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// maxCall bounds the body of a call and that of its reply.
	maxCall = 2 << 20
	// smallCall is up to which size a call goes on the connection for what is small.
	smallCall = 16 << 10
	// callsAtOnce bounds the calls of a peer's connection that are being answered.
	callsAtOnce = 64
	// defaultCall is how long a call without a deadline may take, longestCall any.
	defaultCall = 10 * time.Second
	longestCall = 2 * time.Minute
	callHead    = 8
)

// ErrBusy says that the peer has no room for the request now. It was not carried out.
var ErrBusy = errors.New("peer has no room for the request")

// A CallError is what a peer's handler returned.
type CallError struct {
	Node string
	Text string
}

func (e *CallError) Error() string { return fmt.Sprintf("node %s: %s", e.Node, e.Text) }

// Handler answers calls. from is the node that asks. What it returns goes back to it; an error does as its text. The
// context ends when the caller no longer waits or its connection is gone. Calls come at the same time.
type Handler func(ctx context.Context, from string, kind uint8, body []byte) ([]byte, error)

// Call asks another node: its Options.Handle gets kind and body, and what that returns is returned. ErrUnreachable and
// ErrBusy say that it was not carried out, a *CallError that the handler refused it. After ErrTimeout, the end of ctx,
// or of the connection, nobody knows.
func (t *Transport) Call(ctx context.Context, node string, kind uint8, body []byte) ([]byte, error) {
	if len(body) > maxCall {
		return nil, fmt.Errorf("call of %d bytes, at most %d can be sent", len(body), maxCall)
	}
	p, err := t.peer(node)
	if err != nil {
		return nil, err
	}
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	a, err := s.call(ctx, kind, body)
	if err != nil {
		return nil, err
	}
	switch a.status {
	case statusOK:
		return a.body, nil
	case statusFailed:
		return nil, &CallError{Node: node, Text: string(a.body)}
	case statusBusy:
		return nil, ErrBusy
	}
	return nil, fmt.Errorf("node %s: %v", node, a.status)
}

func (s *session) call(ctx context.Context, kind uint8, body []byte) (answer, error) {
	timeout := defaultCall
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(max(time.Until(deadline), time.Millisecond), longestCall)
	}
	w := newWaiter()
	seq, err := s.open(&call{done: w.done}, timeout)
	if err != nil {
		return answer{}, err
	}
	fixed := binary.LittleEndian.AppendUint32([]byte{kind, 0, 0, 0}, uint32(timeout/time.Millisecond)+1)
	out := s.control
	if len(body) > smallCall {
		out = s.bulk
	}
	o := &outgoing{header: header{kind: kindCall, seq: seq}, fixed: append(fixed, body...)}
	if err := out.push(o); err != nil {
		s.finish(seq, answer{}, err)
	}
	select {
	case got := <-w.c:
		return got.answer, got.err
	case <-ctx.Done():
		s.finish(seq, answer{}, ctx.Err())
		return answer{}, ctx.Err()
	}
}

// replyFrame is the answer to a call.
func replyFrame(seq uint64, st status, body []byte) *outgoing {
	return &outgoing{header: header{kind: kindReply, seq: seq}, fixed: append([]byte{byte(st), 0, 0, 0}, body...)}
}

// parseReply reads one. The body is a copy.
func parseReply(body []byte) answer {
	return answer{status: status(body[0]), body: slices.Clone(body[4:])}
}

// takeCall has a call answered beside the reader.
func (s *served) takeCall(h header, body []byte) {
	size := int64(len(body))
	refuse := func(st status, text string) { _ = s.out.push(replyFrame(h.seq, st, []byte(text))) } // an error ends the connection elsewhere
	if s.t.o.Handle == nil {
		refuse(statusFailed, "it answers no calls")
		return
	}
	select {
	case s.calls <- struct{}{}:
	default:
		s.t.stats.busy.Add(1)
		refuse(statusBusy, "")
		return
	}
	if !s.t.budget.take(size) {
		<-s.calls
		s.t.stats.busy.Add(1)
		refuse(statusBusy, "")
		return
	}
	kind, timeout := body[0], callTimeout(body)
	body = slices.Clone(body[callHead:])
	s.calling.Go(func() {
		defer func() {
			s.t.budget.give(size)
			<-s.calls
		}()
		ctx, cancel := context.WithTimeout(s.ctx, timeout)
		defer cancel()
		_ = s.out.push(handled(h.seq, func() ([]byte, error) { return s.t.o.Handle(ctx, s.node, kind, body) }))
	})
}

func callTimeout(body []byte) time.Duration {
	return min(time.Duration(binary.LittleEndian.Uint32(body[4:]))*time.Millisecond, longestCall)
}

// handled is the frame that says what a handler gave.
func handled(seq uint64, handle func() ([]byte, error)) *outgoing {
	answered, err := handle()
	if err == nil && len(answered) > maxCall {
		err = fmt.Errorf("the answer has %d bytes, at most %d can be sent", len(answered), maxCall)
	}
	if err != nil {
		text := err.Error()
		return replyFrame(seq, statusFailed, []byte(text[:min(len(text), maxErrorText)]))
	}
	return replyFrame(seq, statusOK, answered)
}
