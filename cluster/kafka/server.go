package kafka

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

// Options of a Server. The zero value of each field but Node means its default.
type Options struct {
	// Node holds the streams. Required.
	Node *cluster.Node
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// Advertised is the address (host:port) that clients are told to connect to.
	// If it is empty each client is told the address it has connected to.
	Advertised string
	// Inside is the name of the listener at which clients inside the process (Dial)
	// find the other nodes.
	Inside string
	// NoAutoCreate refuses to create a stream because a client asked for it.
	NoAutoCreate bool
	// AutoPartitions is how many partitions such a stream gets; 1 if 0.
	AutoPartitions int32
	// MaxRequestBytes bounds one request; 100 MiB if 0.
	MaxRequestBytes int
	// MaxMemory bounds the bytes of all requests in progress; 256 MiB if 0. A
	// connection that would exceed it is not read from until others are done.
	MaxMemory int64
	// MaxConnections bounds the connections; if 0 it is 10,000, or half of the files that the process may open if that is less.
	MaxConnections int
	// RebalanceDelay is how long a new consumer group waits for more members.
	RebalanceDelay time.Duration
	// StallTimeout ends a connection whose client neither takes its answer nor
	// finishes a request it has begun; 60 s if 0.
	StallTimeout time.Duration
	// LeaderWait is for how long a request waits for a partition's leader to be known where none is, before the client is
	// told that it has come to the wrong node; 1 s if 0. An election or a hand-over takes less. A client that is told nothing
	// else asks for the metadata, some of them (franz-go) seconds later.
	LeaderWait time.Duration
	// Authorize asks the ACLs of every request that does not come from a trusted
	// listener. What no ACL allows is then refused.
	Authorize bool
	// SuperUsers are the principals of whom no ACL is asked, in the form User:NAME.
	SuperUsers []string
}

func (o Options) withDefaults() (Options, error) {
	if o.Node == nil {
		return o, errors.New("kafka server needs a node")
	}
	if o.Advertised != "" {
		if _, _, err := splitAddress(o.Advertised); err != nil {
			return o, fmt.Errorf("advertised address: %w", err)
		}
	}
	o.LeaderWait = cmp.Or(o.LeaderWait, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.NoAutoCreate = o.NoAutoCreate || o.Node.Observes() // a stream that is not here may still come
	o.AutoPartitions = orDefault(o.AutoPartitions, 1)
	o.MaxRequestBytes = orDefault(o.MaxRequestBytes, 100<<20)
	o.MaxMemory = max(orDefault(o.MaxMemory, 256<<20), int64(o.MaxRequestBytes))
	o.MaxConnections = orDefault(o.MaxConnections, defaultConnections())
	o.StallTimeout = orDefault(o.StallTimeout, time.Minute)
	return o, nil
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// Server answers Kafka clients. Its methods are safe for concurrent use.
type Server struct {
	opts   Options
	node   *cluster.Node
	logger *slog.Logger
	handle map[int16]handler
	memory *semaphore.Weighted
	// waiting is how many connections wait for memory.
	waiting atomic.Int32
	pool    bufferPool
	records *storage.RecordReader
	// inboxes are the buffers that sockets are read into.
	inboxes inboxPool
	counts  counters
	groups  *groupCoordinator
	txns    *txnCoordinator
	// sessions are those of Fetch.
	sessions *fetchSessions
	auth     *authorizer // nil: everybody may do everything

	decoySecret []byte              // see decoy
	checking    *semaphore.Weighted // passwords at a time

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections and Serve loops

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	reported map[string]struct{} // remotes that were logged for nonsense
	leftOut  map[string]struct{} // nodes that were logged for having no address for some clients
	closed   bool
}

// New returns a server that answers once Serve, ServeConn or Dial brings it
// connections. Close it before the node.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts:     opts,
		node:     opts.Node,
		logger:   opts.Logger,
		memory:   semaphore.NewWeighted(opts.MaxMemory),
		records:  storage.NewRecordReader(),
		inboxes:  make(inboxPool, keptInboxes),
		conns:    map[net.Conn]struct{}{},
		reported: map[string]struct{}{},
		leftOut:  map[string]struct{}{},

		decoySecret: make([]byte, 32),
		checking:    semaphore.NewWeighted(2),
	}
	_, _ = rand.Read(s.decoySecret) // documented never to fail
	if opts.Authorize {
		s.auth = newAuthorizer(s.node.Meta(), opts.SuperUsers)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.handle = s.handlers()
	s.groups = newGroupCoordinator(opts.RebalanceDelay, s)
	s.txns = newTxnCoordinator(s)
	s.sessions = newFetchSessions(maxSessions, s.topicName)
	s.wg.Go(func() { s.txns.run(s.ctx) })
	s.wg.Go(func() { s.followCoordinator(s.ctx) })
	return s, nil
}

// Serve accepts connections until ctx ends or Close is called, which is no
// error. It closes the listener and returns when its connections have ended.
func (s *Server) Serve(ctx context.Context, l net.Listener, access Access) error {
	if err := access.check(); err != nil {
		_ = l.Close()
		return fmt.Errorf("serving Kafka clients on %s: %w", l.Addr(), err)
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	short := false // of descriptors or memory
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				reset(c)
			}
			return nil
		case err == nil:
			short = false
			if s.admit(c) { // here, for those who are turned away must not pile up
				conns.Go(func() { s.serveAdmitted(ctx, c, access) })
			}
		case !passing(err):
			return fmt.Errorf("accepting Kafka connections on %s: %w", l.Addr(), err)
		default:
			if !short {
				s.logger.Warn("cannot accept Kafka connections for the moment", "address", l.Addr().String(), "error", err)
			}
			short = true
			retry.Pause(ctx, 100*time.Millisecond)
		}
	}
}

// passing says that an error of Accept will pass: the client has gone already, or
// the process is short of something that it gets back when others leave.
func passing(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ServeConn answers one connection until its client or ctx ends it, or Close is
// called. It closes the connection.
func (s *Server) ServeConn(ctx context.Context, c net.Conn, access Access) {
	if s.admit(c) {
		s.serveAdmitted(ctx, c, access)
	}
}

// admit says whether there is room for a connection; if not, it is closed.
func (s *Server) admit(c net.Conn) bool {
	err := s.add(c)
	if errors.Is(err, errCrowded) {
		s.complain(c, err)
	}
	if err != nil {
		reset(c)
	}
	return err == nil
}

func (s *Server) serveAdmitted(ctx context.Context, c net.Conn, access Access) {
	defer s.remove(c)
	endAbruptly(c)
	ctx, cancel := s.within(ctx)
	defer cancel()
	if access.TLS != nil {
		encrypted := tls.Server(c, access.TLS)
		if err := s.handshake(ctx, encrypted); err != nil {
			if ctx.Err() == nil {
				endInOrder(c)
				s.complain(c, fmt.Errorf("TLS handshake: %w", err))
			}
			return
		}
		c = encrypted
		defer c.Close()
	}
	newConn(s, c, access).run(ctx)
}

func (s *Server) handshake(ctx context.Context, c *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.StallTimeout)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// Dial returns a connection to this server that needs no network, and is trusted. It has the
// form that kgo.Dialer wants once its address arguments are dropped.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	s.wg.Go(func() { s.ServeConn(s.ctx, server, Access{Name: s.opts.Inside, Trusted: true}) })
	return pipeEnd{client}, nil
}

// Close ends all connections and returns when nothing of the server runs any
// more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.groups.close()
	s.wg.Wait()
	return nil
}

// within returns a context that ends with ctx or with the server.
func (s *Server) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Server) add(c net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case len(s.conns) >= s.opts.MaxConnections:
		return errCrowded
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return nil
}

func (s *Server) remove(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.wg.Done()
}

// maxReported bounds the remotes remembered for having been logged.
const maxReported = 1024

// complain logs why a connection was ended, once a remote host: a port scanner
// must not fill the disk with log lines.
func (s *Server) complain(c net.Conn, err error) {
	remote := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	s.mu.Lock()
	_, known := s.reported[remote]
	known = known || len(s.reported) >= maxReported
	if !known {
		s.reported[remote] = struct{}{}
	}
	s.mu.Unlock()
	if !known {
		s.logger.Warn("closing a Kafka connection; later ones of this remote are not logged", "remote", remote, "error", err)
	}
}
