package load

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	clientID = "daybook-bench"
	// Versions that Apache Kafka 4 and all that speak its protocol answer, before lengths became compact.
	produceVersion = 7
	fetchVersion   = 4

	atCorrelation = 8 // in a request's frame
	mostAnswer    = 256 << 20
)

var errAnswer = errors.New("the server's answer cannot be understood")

// rawConn is a connection that sends prepared requests.
type rawConn struct {
	net.Conn
	r      *bufio.Reader
	answer []byte
}

func dialRaw(ctx context.Context, addr string, buffer int) (*rawConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &rawConn{Conn: c, r: bufio.NewReaderSize(c, buffer)}, nil
}

// frameOf is a request as it goes over the wire.
func frameOf(dst []byte, r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(dst, r, 0)
}

// send writes a frame under a number that its answer will have.
func (c *rawConn) send(frame []byte, correlation int32) error {
	binary.BigEndian.PutUint32(frame[atCorrelation:], uint32(correlation))
	_, err := c.Write(frame)
	return err
}

// receive returns the body of the next answer, valid until the next call, and its number.
func (c *rawConn) receive() (body []byte, correlation int32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, 0, err
	}
	n := int64(int32(binary.BigEndian.Uint32(head[:]))) - 4
	if n < 0 || n > mostAnswer {
		return nil, 0, fmt.Errorf("%w: %d bytes", errAnswer, n)
	}
	if int64(cap(c.answer)) < n {
		c.answer = make([]byte, n)
	}
	c.answer = c.answer[:n]
	_, err = io.ReadFull(c.r, c.answer)
	return c.answer, int32(binary.BigEndian.Uint32(head[4:])), err
}

// reader takes the protocol's types off an answer. What does not fit sets bad, and all that follow are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) || r.bad {
		r.bad, r.b = true, nil
		return make([]byte, 8) // enough for the integers
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int16() int16 { return int16(binary.BigEndian.Uint16(r.take(2))) }
func (r *reader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }

func (r *reader) err() error {
	if r.bad {
		return errAnswer
	}
	return nil
}
