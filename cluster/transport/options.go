package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// Options are the settings of a Transport. Cluster, Node and Listener are needed.
type Options struct {
	// Cluster is the cluster's id. Peers with another one are refused.
	Cluster string
	// Node is this node's id: raft's server id and server address of the local member of every group.
	Node string
	// Listener accepts the peers' sessions. It belongs to the transport, which closes it.
	Listener net.Listener
	// Advertise is the address at which peers reach the Listener. They are told in each hello, and look there for a node that
	// is not where they know it to be. Empty: they are not told.
	Advertise string
	// Start counts the starts of this node, durably; 0: it does not say. Whose number is not higher than that of another process of
	// its node that was met before runs on a folder that was set back, and is refused.
	Start uint64
	// Started, if given, returns the latest start that is known of another node; 0: none. Of those that were met the transport knows.
	Started func(node string) uint64
	// Dial opens a connection to a peer's address. By default it is that of net.Dialer, over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS, if given, is used on both sides of every connection. For mutual authentication it holds the certificate, the
	// authorities as RootCAs and ClientCAs, and ClientAuth is tls.RequireAndVerifyClientCert. If ServerName is empty it is
	// the host of the peer's address.
	TLS *tls.Config
	// Authenticate, if given, decides whether the other side of a TLS connection may call itself node. address is where it
	// says it is reached, or where it was reached; empty if it does not say.
	Authenticate func(node, address string, state tls.ConnectionState) error
	// Handle answers the calls of other nodes; without it they are refused.
	Handle Handler
	// HandleStranger answers [Ask]; without it strangers are refused. state is nil without TLS.
	HandleStranger func(ctx context.Context, body []byte, state *tls.ConnectionState) ([]byte, error)
	// Observe serves observers; without it they are refused.
	Observe ObserverHandler
	// Timeout bounds each wait: for a connection, a write, room, an answer. 2 s by default.
	Timeout time.Duration
	// Window is how long a heartbeat waits for others to the same peer: an eighth of Timeout by default. It is part of each group's
	// pause between heartbeats, of which raft's own, a tenth to a fifth of the timeout, begins with the answer. A window longer
	// than the difference has the heartbeats of all groups to a peer fall into step.
	Window time.Duration
	// Silence is after how long without a byte from a peer it is taken for dead: 2 s by default. A negative one is never. Living peers
	// say something every eighth of it.
	Silence time.Duration
	// Stagger is how much later than the one before it each further member stands when a leader died: 300 ms by default.
	Stagger time.Duration
	// ReceiveBytes bounds what was received for all groups and is not yet answered: 256 MiB by default.
	ReceiveBytes int64
	// Logger is silent by default.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Cluster == "" || len(o.Cluster) > maxName:
		return o, errors.New("a cluster id of 1 to 255 bytes is needed")
	case o.Node == "" || len(o.Node) > maxName:
		return o, errors.New("a node id of 1 to 255 bytes is needed")
	case o.Listener == nil:
		return o, errors.New("a listener is needed")
	case len(o.Advertise) > maxName:
		return o, errors.New("an address to advertise of at most 255 bytes is needed")
	}
	return o.defaults(), nil
}

func (o Options) defaults() Options {
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	setDefault(&o.Timeout, 2*time.Second)
	setDefault(&o.Window, o.Timeout/8)
	setDefault(&o.Silence, 2*time.Second)
	setDefault(&o.Stagger, 300*time.Millisecond)
	if o.ReceiveBytes == 0 {
		o.ReceiveBytes = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

func setDefault(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}

// soon is how long answers to heartbeats, and news of what is committed, wait for others.
func (o *Options) soon() time.Duration { return o.Window / 12 }

// every is how often something is said on a connection that is not used.
func (o *Options) every() time.Duration {
	if o.Silence < 0 {
		return 5 * time.Second
	}
	return o.Silence / 8
}

// idle is how long a connection may be silent, or a frame take to come, before the connection is given up.
func (o *Options) idle() time.Duration { return max(32*o.every(), 2*o.Timeout) }
