package keepalive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxAnswer is more than any server's answer takes, in bytes.
	maxAnswer = 1 << 20
	// lookAgain is the time for what is in the socket already.
	lookAgain = 100 * time.Millisecond
)

// ask wants a sign of life within that time, over a connection of its own.
func (s *server) ask(ctx context.Context, within time.Duration) error {
	line, err := s.askOver(ctx, nil, within)
	if line != nil {
		_ = line.Close()
	}
	return err
}

// askOver wants a sign of life within that time, over line or, where that is nil, over a connection that it opens. It
// returns the connection; after an error that is good for nothing but to be closed.
func (s *server) askOver(ctx context.Context, line net.Conn, within time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(within)
	if line == nil {
		dialing, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		c, err := s.dial(dialing, s.network, s.address)
		if err != nil {
			return nil, fmt.Errorf("dialing it: %w", err)
		}
		line = c
	}
	defer context.AfterFunc(ctx, func() { _ = line.Close() })()
	_ = line.SetDeadline(deadline)
	return line, askVersions(line)
}

// askVersions asks what versions of requests the server speaks: of all questions the one that is answered without a login
// and without a look at the disk.
func askVersions(c net.Conn) error {
	request := kmsg.NewRequestFormatter(kmsg.FormatterClientID("daybook-keepalive")).AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)
	if _, err := c.Write(request); err != nil {
		return fmt.Errorf("asking for its versions: %w", err)
	}
	var size [4]byte
	got, err := io.ReadFull(c, size[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The answer may lie there, and it was this process that got no turn.
		_ = c.SetDeadline(time.Now().Add(lookAgain))
		_, err = io.ReadFull(c, size[got:])
	}
	if err != nil {
		return fmt.Errorf("waiting for its versions: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxAnswer {
		return fmt.Errorf("it announces an answer of %d bytes to the question for its versions: is it a Kafka server?", n)
	}
	if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
		return fmt.Errorf("reading its versions: %w", err)
	}
	return nil
}
