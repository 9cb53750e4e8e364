// Package keepalive dials Kafka servers and closes the connections to one that has fallen silent: a frozen process or a
// machine without power refuses nothing, so whoever waits for its answer waits until the request times out, which takes
// Kafka clients tens of seconds. By then another member has long led what the silent one did.
package keepalive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ErrSilent is why a server is not dialed.
var ErrSilent = errors.New("the server does not answer")

const (
	// idle is how long a connection may wait for the server before the server is asked for a sign of life.
	idle = 500 * time.Millisecond
	// patience is how long the server has for that sign. What it does for its clients does not matter: only that it answers.
	patience = 1500 * time.Millisecond
	// distrust is how long after its silence a server has to give a sign, within proof, before anything else is asked of
	// it; so that a client that looks for another server does not wait for this one again.
	distrust = 5 * time.Second
	proof    = 500 * time.Millisecond
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer opens connections that are closed when their server is silent. It is safe for concurrent use.
type Dialer struct {
	dial Dial
	log  *slog.Logger

	mu      sync.Mutex
	servers map[string]*server // by address
}

// New returns a dialer whose connections are those of dial. It warns in log of servers that are silent.
func New(dial Dial, log *slog.Logger) *Dialer {
	return &Dialer{dial: dial, log: log, servers: map[string]*server{}}
}

// DialContext opens a connection to a Kafka server. It fails at once with ErrSilent where the server was silent a moment
// ago and still is. Whoever gets the connection has to close it.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	s := d.server(network, address)
	if s.distrusted() {
		if err := s.ask(ctx, proof); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSilent, err)
		}
		s.trust()
	}
	c, err := d.dial(ctx, network, address)
	if err != nil {
		if ctx.Err() == nil && saysNothing(err) {
			s.suspect()
		}
		return nil, err
	}
	return s.add(c), nil
}

func (d *Dialer) server(network, address string) *server {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.servers[address]
	if s == nil {
		s = &server{dial: d.dial, log: d.log, network: network, address: address, conns: map[*conn]struct{}{}}
		d.servers[address] = s
	}
	return s
}
