package keepalive

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// server is one address and the connections to it. While there are any, a goroutine watches over them.
type server struct {
	dial             Dial
	log              *slog.Logger
	network, address string

	heard atomic.Int64 // when it last sent anything over any connection, by clock

	mu       sync.Mutex // guards all below
	conns    map[*conn]struct{}
	until    int64 // it is distrusted until then, by clock
	stop     context.CancelFunc
	watching chan struct{} // closed when the watch has ended
}

// started is what clock counts from.
var started = time.Now()

// clock is a time that no change of the system's clock touches, in nanoseconds.
func clock() int64 { return int64(time.Since(started)) }

func (s *server) add(under net.Conn) net.Conn {
	c := &conn{Conn: under, server: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	if s.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		s.stop, s.watching = stop, done
		go func() {
			defer close(done)
			s.watch(ctx)
		}()
	}
	return c
}

// remove forgets c, and with the last one ends the watch.
func (s *server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	stop, done := s.stop, s.watching
	last := len(s.conns) == 0 && stop != nil
	if last {
		s.stop, s.watching = nil, nil
	}
	s.mu.Unlock()
	if last {
		stop()
		<-done
	}
}

func (s *server) watch(ctx context.Context) {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	var line net.Conn // kept for the next question
	defer func() { hangUp(line) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := clock()
		if !s.keepsWaiting(asked) {
			continue
		}
		var err error
		if line, err = s.askOver(ctx, line, patience); err == nil {
			continue
		}
		hangUp(line)
		line = nil
		if ctx.Err() == nil && saysNothing(err) && s.heard.Load() < asked {
			s.suspect()
			s.cut(err)
		}
	}
}

// keepsWaiting reports whether a connection has waited for long, and nothing came over the others.
func (s *server) keepsWaiting(now int64) bool {
	if now-s.heard.Load() < int64(idle) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.waits(now) >= idle {
			return true
		}
	}
	return false
}

// cut closes all connections under their owners, whose reads and writes fail.
func (s *server) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Warn("a server of the journal is silent: its connections are closed, another one is asked", "server", s.address, "connections", len(s.conns), "error", err)
	for c := range s.conns {
		hangUp(c.Conn)
	}
}

// hangUp closes c, if there is one, without TLS's goodbye, which would wait for a server that does not read.
func hangUp(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c != nil {
		_ = c.Close()
	}
}

func (s *server) distrusted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clock() < s.until
}

func (s *server) suspect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = clock() + int64(distrust)
}

func (s *server) trust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = 0
}

// saysNothing reports whether err is what one gets from a machine that is not there, or is there and does nothing.
func saysNothing(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
