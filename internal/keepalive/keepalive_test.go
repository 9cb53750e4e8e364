package keepalive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/keepalive"
)

// A socket on which nobody accepts is what a frozen process looks like from outside.
func TestWhoWaitsForASilentServerIsToldSo(t *testing.T) {
	t.Parallel()
	frozen := listen(t)
	var log syncedBuffer
	dialer := keepalive.New(new(net.Dialer).DialContext, slog.New(slog.NewTextHandler(&log, nil)))
	c := dial(t, dialer, frozen)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // the client's own patience
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading from a silent server: %v, want that the connection was closed", err)
	}
	if !strings.Contains(log.String(), frozen.Addr().String()) {
		t.Errorf("the log does not name the silent server: %q", log.String())
	}
	told := time.Now()
	_, err := dialer.DialContext(t.Context(), "tcp", frozen.Addr().String())
	if !errors.Is(err, keepalive.ErrSilent) && time.Since(told) < 4*time.Second { // 5 s later it would be tried again
		t.Errorf("dialing it again at once: %v, want %v", err, keepalive.ErrSilent)
	}
	serve(t, frozen, 0)
	if err := ask(dial(t, dialer, frozen)); err != nil {
		t.Errorf("asking the server after it woke up: %v", err)
	}
}

func TestASlowServerThatIsAliveIsWaitedFor(t *testing.T) {
	t.Parallel()
	slow := listen(t)
	serve(t, slow, 4*time.Second) // longer than a silent one is given
	dialer := keepalive.New(new(net.Dialer).DialContext, slog.New(slog.DiscardHandler))
	if err := ask(dial(t, dialer, slow)); err != nil {
		t.Errorf("an answer that takes 4 s: %v", err)
	}
}

func TestAnIdleConnectionIsLeftAlone(t *testing.T) {
	t.Parallel()
	frozen := listen(t)
	dialer := keepalive.New(new(net.Dialer).DialContext, slog.New(slog.DiscardHandler))
	idle, waiting := dial(t, dialer, listen(t)), dial(t, dialer, frozen)
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("reading from a silent server: %v", err)
	}
	if _, err := idle.Write([]byte("x")); err != nil {
		t.Errorf("nobody waits on a connection to a server that says nothing, yet it is closed: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, d *keepalive.Dialer, to net.Listener) net.Conn {
	t.Helper()
	// On a machine without time to spare a server that has just woken up may not prove it at once.
	for give := time.Now().Add(30 * time.Second); ; {
		c, err := d.DialContext(t.Context(), "tcp", to.Addr().String())
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		if !errors.Is(err, keepalive.ErrSilent) || time.Now().After(give) {
			t.Fatal(err)
		}
	}
}

// serve answers frames in the way of Kafka: a request with the client id "slow" after a while, others at once.
func serve(t *testing.T, l net.Listener, after time.Duration) {
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				for answer(ctx, c, after) == nil {
				}
			})
		}
	})
}

func answer(ctx context.Context, c net.Conn, after time.Duration) error {
	request, err := readFrame(c)
	if err != nil {
		return err
	}
	if bytes.Contains(request, []byte("slow")) {
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
	_, err = c.Write(frame("answer"))
	return err
}

// ask sends a request that a server may take its time with, and waits for the answer.
func ask(c net.Conn) error {
	if _, err := c.Write(frame("slow")); err != nil {
		return err
	}
	_, err := readFrame(c)
	return err
}

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, body)
	return body, err
}

type syncedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
