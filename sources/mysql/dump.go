package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Timing of the dump connection.
const (
	idleAfter       = 2 * time.Millisecond   // silence after which the batch goes off
	idleAgain       = 100 * time.Millisecond // silence between two more chances to do something
	heartbeatPeriod = time.Second
	deadAfter       = 30 * time.Second // silence, heartbeats included, after which the connection is given up
)

// errStopped ends the dump from inside a handler; the handler's owner knows why.
var errStopped = errors.New("stopped")

// dump reads one stretch of the binary log and hands the events to a handler, all on
// one goroutine.
type dump struct {
	cfg      *Config
	flavor   string
	serverID uint32
	name     string // under which it registers as a replica
	tls      *tls.Config

	// handle takes an event; idle is called when the server has sent nothing for a
	// moment, with all events before handled. An error of either ends run with it.
	handle func(*replication.BinlogEvent) error
	idle   func() error
}

// run reads from the given place, or from behind the given transactions where set is
// not nil, until ctx ends, a callback fails or the connection does.
func (d *dump) run(ctx context.Context, from place, set gtidSet) error {
	host, port, err := net.SplitHostPort(d.cfg.Addr)
	if err != nil {
		return fmt.Errorf("address %q: %w", d.cfg.Addr, err)
	}
	portNumber, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("address %q: %w", d.cfg.Addr, err)
	}
	w := &watchedConn{idle: d.idle}
	h := &handler{handle: d.handle}
	s := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: d.serverID, Flavor: d.flavor, Host: host, Port: uint16(portNumber),
		User: d.cfg.User, Password: d.cfg.Password.Reveal(), TLSConfig: d.tls, Localhost: d.name,
		RawModeEnabled: true, VerifyChecksum: true, DisableRetrySync: true, HeartbeatPeriod: heartbeatPeriod,
		Logger: slog.New(slog.DiscardHandler), Dialer: w.dial, SynchronousEventHandler: h,
		Option: func(c *client.Conn) error {
			// The server must not hang up while the journal takes its time.
			_, err := c.Execute("SET SESSION net_write_timeout = 86400, net_read_timeout = 86400")
			return err
		},
	})
	defer s.Close()
	defer w.close()
	stop := context.AfterFunc(ctx, w.close)
	defer stop()

	streamer, err := d.start(s, from, set)
	if err != nil {
		return d.verdict(ctx, w, h, fmt.Errorf("starting to read the binary log at %s: %w", from, err))
	}
	w.watch()
	// With a handler the streamer only ever brings the end.
	_, err = streamer.GetEvent(context.Background())
	return d.verdict(ctx, w, h, fmt.Errorf("reading the binary log: %w", err))
}

func (d *dump) start(s *replication.BinlogSyncer, from place, set gtidSet) (*replication.BinlogStreamer, error) {
	if set != nil {
		gset, err := mysql.ParseGTIDSet(d.flavor, set.String())
		if err != nil {
			return nil, err
		}
		return s.StartSyncGTID(gset)
	}
	return s.StartSync(mysql.Position{Name: from.File, Pos: uint32(from.Pos)})
}

// verdict picks the error that says most about why the dump ended.
func (d *dump) verdict(ctx context.Context, w *watchedConn, h *handler, err error) error {
	// The syncer's goroutine may be inside a callback still; Close waits for it, and
	// the callbacks end with ctx or with their error.
	if e := errors.Join(h.failure(), w.failure()); e != nil {
		if f := h.failure(); f != nil {
			return f
		}
		return w.failure()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explainDump(err, d.cfg)
}

// explainDump turns what the server says when it can't serve the position into a
// StopError. All of it comes under one number, so the text has to tell.
func explainDump(err error, cfg *Config) error {
	var e *mysql.MyError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG:
		return explainFatal(err, e.Message, cfg)
	case mysql.ER_ACCESS_DENIED_ERROR, mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR:
		return denied(cfg, err)
	}
	return err
}

func explainFatal(err error, message string, cfg *Config) error {
	for _, c := range []struct{ text, code, fix string }{
		{"Could not find first log", "binlog-purged", ""},
		{"purged", "binlog-purged", ""},
		{"Could not find GTID state", "binlog-purged", ""},
		{"not in the master's binlog", "other-server", "lead the address to a server that has the transactions read before, or " + anew},
		{"has more GTIDs than", "other-server", "lead the address to a server that has the transactions read before, or " + anew},
		{"Cannot replicate GTID-transaction", codeGTIDMode, permissive},
		{"Cannot replicate anonymous transaction", codeGTIDMode, permissive},
		{"in AUTO_POSITION mode", codeGTIDMode, permissive}, // the mode was changed since it was asked for
		{"same server_uuid/server_id", "server-id-taken", "give this source or the other replica another server_id"},
	} {
		if !strings.Contains(message, c.text) {
			continue
		}
		if c.fix == "" {
			return purged(cfg, err)
		}
		return &pipeline.StopError{Code: c.code, Where: cfg.Addr, Err: err, Fix: c.fix}
	}
	return &pipeline.StopError{Code: "binlog-unreadable", Where: cfg.Addr, Err: err, Fix: "check the server's binary log with mysqlbinlog; if it can't be mended, " + anew}
}

// handler adapts a function to the syncer and keeps its error, which the syncer
// would wrap beyond recognition.
type handler struct {
	handle func(*replication.BinlogEvent) error
	mu     sync.Mutex
	err    error // guarded by mu
}

// HandleEvent is called by the syncer for each event, in order.
func (h *handler) HandleEvent(e *replication.BinlogEvent) error {
	err := h.handle(e)
	if err != nil {
		h.mu.Lock()
		h.err = err
		h.mu.Unlock()
	}
	return err
}

func (h *handler) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// watchedConn is the connection that the syncer reads from. Its Read is called when
// all that came before has been handled, on the goroutine that handles: the one
// moment when the reader is known to be idle.
type watchedConn struct {
	net.Conn
	idle func() error

	mu       sync.Mutex // guards the fields below
	watching bool
	closed   bool
	err      error // of idle
}

func (w *watchedConn) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The syncer dials once more when it is closed, to kill its old connection. The
	// server finds out by itself.
	if w.closed || w.Conn != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	w.Conn = c
	return w, nil
}

// watch begins to report idle moments and to give up on a dead connection; before it
// is called the syncer is still talking SQL.
func (w *watchedConn) watch() {
	w.mu.Lock()
	w.watching = true
	w.mu.Unlock()
}

func (w *watchedConn) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.Conn != nil {
		_ = w.Conn.Close()
	}
}

func (w *watchedConn) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Read waits a moment for data, then reports that there is none, and again from time
// to time, until the server has been silent for too long.
func (w *watchedConn) Read(p []byte) (int, error) {
	w.mu.Lock()
	watching := w.watching
	w.mu.Unlock()
	wait := idleAfter
	if !watching {
		wait = deadAfter
	}
	for silent := time.Duration(0); ; {
		if err := w.Conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return 0, err
		}
		n, err := w.Conn.Read(p)
		if silent += wait; n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || silent >= deadAfter {
			return n, err
		}
		if err := w.idle(); err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return 0, io.ErrUnexpectedEOF
		}
		wait = idleAgain
	}
}

// SetReadDeadline is the syncer's way to interrupt Read; ours is close.
func (w *watchedConn) SetReadDeadline(time.Time) error { return nil }

// SetDeadline does nothing, for the same reason.
func (w *watchedConn) SetDeadline(time.Time) error { return nil }
