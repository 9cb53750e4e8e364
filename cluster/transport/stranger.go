package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// maxStranger bounds what who is no node of the cluster may ask, strangersAtOnce how many of them are answered.
	maxStranger     = 64 << 10
	strangersAtOnce = 8
)

// Ask sends one request to the node at an address, whose Options.HandleStranger answers it, over a connection of its
// own. It is how a node that does not know its cluster yet asks to join. Of o, Dial, TLS and Timeout count.
func Ask(ctx context.Context, o Options, address string, body []byte) ([]byte, error) {
	o = o.defaults()
	if len(body) > maxStranger {
		return nil, fmt.Errorf("question of %d bytes, at most %d can be asked", len(body), maxStranger)
	}
	timeout := defaultCall
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := o.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	defer raw.Close()
	conn, r, _, err := o.hail(ctx, raw, address, hello{lane: laneStranger, version: version})
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("what listens at %s does not answer as a node; is that a node's address for other nodes, with TLS as here: %w", address, err)
	}
	q := putU32([]byte{0, 0, 0, 0}, uint32(timeout/time.Millisecond)+1)
	frame := append(append(make([]byte, headerBytes), q...), body...)
	header{length: uint32(len(frame) - headerBytes), kind: kindCall}.put(frame)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	_, answered, err := readFrame(r, kindReply)
	if err != nil {
		return nil, fmt.Errorf("waiting for the answer of the node at %s: %w", address, err)
	}
	a := parseReply(answered)
	if a.status != statusOK {
		return nil, &RefusedError{Address: address, Reason: string(a.body)}
	}
	return a.body, nil
}

// serveStrangers answers a stranger, if there are not too many.
func (t *Transport) serveStrangers(conn net.Conn, r *bufio.Reader) {
	defer conn.Close()
	select {
	case t.strange <- struct{}{}:
	default:
		t.stats.refused.Add(1)
		return
	}
	defer func() { <-t.strange }()
	if err := t.serveStranger(conn, r); err != nil && !errors.Is(err, io.EOF) && t.ctx.Err() == nil { // EOF: it greets, and asks nothing
		t.o.Logger.Warn("a node that asked to join was not answered", "from", conn.RemoteAddr(), "error", err)
	}
}

// serveStranger answers one request of a node that does not know the cluster yet.
func (t *Transport) serveStranger(conn net.Conn, r *bufio.Reader) error {
	if err := conn.SetDeadline(time.Now().Add(t.o.Timeout)); err != nil {
		return err
	}
	h, err := readHeader(r)
	if err != nil {
		return err
	}
	if h.kind != kindCall || h.length > callHead+maxStranger {
		return fmt.Errorf("%w: a stranger sends a frame of kind %d with %d bytes", errProtocol, h.kind, h.length)
	}
	body, err := readBody(r, h)
	if err != nil {
		return err
	}
	timeout := callTimeout(body)
	if err := conn.SetDeadline(time.Now().Add(timeout + t.o.Timeout)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	o := handled(0, func() ([]byte, error) { return t.o.HandleStranger(ctx, body[callHead:], stateOf(conn)) })
	bufs, _ := o.take(nil)
	_, err = bufs.WriteTo(conn)
	return err
}
