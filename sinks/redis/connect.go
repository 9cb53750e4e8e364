package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect makes sure that there is a client. Each one begins with a connection that was
// dialled here: go-redis remembers a failure to dial and answers with it for a while, and
// prints it on its own.
func (s *Sink) connect(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return s.transient("connecting", err)
	}
	first := new(atomic.Pointer[net.Conn])
	first.Store(&conn)
	s.client = redis.NewClient(&redis.Options{
		Addr: s.config.Addr, Username: s.config.User, Password: s.config.Password.Reveal(), DB: s.config.DB,
		ClientName: "daybook-" + s.env.Pipeline + "-" + s.env.Name,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if conn := first.Swap(nil); conn != nil {
				return *conn, nil
			}
			return s.dial(ctx)
		},
		// The deliver loop retries; a retry hidden below it would make a slow
		// destination look like a slow sink.
		MaxRetries: -1, DialerRetries: 1,
		ReadTimeout: s.config.Timeout, WriteTimeout: s.config.Timeout, ContextTimeoutEnabled: true,
		// One connection: what a Flush sends arrives in its order.
		PoolSize: 1, PipelinePoolSize: -1, ReadBufferSize: 128 << 10, WriteBufferSize: 128 << 10,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.unused = first
	s.target.client = s.client
	return nil
}

// dial opens a connection to the server.
func (s *Sink) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	if s.security != nil {
		return (&tls.Dialer{Config: s.security}).DialContext(ctx, "tcp", s.config.Addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", s.config.Addr)
}

// disconnect lets go of the client; the next Flush connects anew.
func (s *Sink) disconnect() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	if conn := s.unused.Swap(nil); conn != nil {
		_ = (*conn).Close() // nothing was sent on it
	}
	s.client = nil
	return err
}
