package http

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/internal/certs"
	"github.com/daybook-data/daybook/internal/connlimit"
	"github.com/daybook-data/daybook/pipeline"
)

// grace is how long requests under way may take to finish when the source stops.
const grace = 3 * time.Second

// maxConnections is how many clients there may be, where that is not more than a quarter of the files that the process may
// open: a journal beside needs some to begin segments.
const maxConnections = 10_000

// Source takes events over HTTP. Report and Addr may be called at any time.
type Source struct {
	config Config
	zone   *time.Location
	once   bool
	log    *slog.Logger
	now    func() time.Time

	counts counters
	addr   atomic.Pointer[string] // nil while it does not listen
}

var (
	_ pipeline.Source   = (*Source)(nil)
	_ pipeline.Deduper  = (*Source)(nil)
	_ pipeline.Reporter = (*Source)(nil)
	_ pipeline.Receiver = (*Source)(nil)
)

// DedupeWindow returns how long ids are to be remembered; 0 without ids.
func (s *Source) DedupeWindow() time.Duration { return s.config.Remembers() }

// Addr returns the address that the source listens on, or an empty text while it
// does not. It differs from the configured one where that has port 0.
func (s *Source) Addr() string {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return ""
}

// Report says where the source listens and counts what it answered.
func (s *Source) Report() pipeline.Report {
	r := pipeline.Report{Phase: "waiting", Counters: s.counts.report()}
	if a := s.Addr(); a != "" {
		r.Phase, r.Detail = "live", "listening on "+a+s.config.Path
	}
	return r
}

// Receives implements pipeline.Receiver.
func (s *Source) Receives() {}

// Run listens until ctx ends. Nothing is kept outside, so a source opened with Once
// returns at once.
func (s *Source) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	if from != "" && from != resume {
		return &pipeline.StopError{
			Code: "position-foreign", Where: fmt.Sprintf("position %q", from),
			Err: errors.New("this is no position of an http source: the name was another kind's before"),
			Fix: "give the source a new name",
		}
	}
	if s.once {
		return nil
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer s.addr.Store(nil)
	if s.config.exposed() && !s.config.Token.IsSet() {
		s.log.Warn("whoever reaches this address can append: set token, or listen on 127.0.0.1", "addr", s.Addr())
	}
	return s.serve(ctx, listener, out)
}

func (s *Source) listen(ctx context.Context) (net.Listener, error) {
	var certificate *certs.Renewed
	if s.config.TLS.Cert != "" {
		var err error
		if certificate, err = certs.Load(s.config.TLS.Cert, s.config.TLS.Key, s.log); err != nil {
			return nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for events: %w", err)
	}
	addr := listener.Addr().String()
	s.addr.Store(&addr)
	room := connlimit.Share(maxConnections, 4)
	listener = connlimit.New(listener, room, func() {
		s.log.Warn("as many clients are connected as may be, others are turned away: raise the limit of open files (ulimit -n, LimitNOFILE), of which they may take a quarter, up to 10,000", "addr", addr, "connections", room)
	})
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{GetCertificate: certificate.Get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	return listener, nil
}

// serve runs the server and the appender until ctx ends or one of them fails. The
// appender outlives ctx by the grace, so that requests under way can be answered.
func (s *Source) serve(ctx context.Context, listener net.Listener, out pipeline.Emitter) error {
	appending, stopAppending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAppending()
	stopping := make(chan struct{})
	a := newAppender(s.config.MaxInFlight)
	gate := &gate{next: s.newHandler(a, stopping)}
	server := &nethttp.Server{
		Handler:           gate,
		ReadHeaderTimeout: s.config.ReadTimeout,
		ReadTimeout:       s.config.ReadTimeout,
		WriteTimeout:      2*s.config.ReadTimeout + s.config.Timeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // port scans, mostly
	}
	served, appended := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go func() { appended <- a.run(appending, out) }()

	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-appended:
		appended <- err
	case err = <-served:
		served <- err
		err = fmt.Errorf("serving events: %w", err)
	}
	close(stopping)
	_ = shutdown(ctx, server, grace) // what is not answered by then gets 503 next
	stopAppending()
	<-appended
	if shutdown(ctx, server, time.Second) != nil {
		_ = server.Close() // the connections that are left are of clients that still send
	}
	gate.close()
	<-served
	return err
}

// shutdown stops listening and waits until all requests are answered.
func shutdown(ctx context.Context, server *nethttp.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return server.Shutdown(ctx)
}

func (s *Source) newHandler(a *appender, stopping <-chan struct{}) *handler {
	return &handler{
		config: &s.config,
		events: eventReader{
			keys:  []string{s.config.TimeField, s.config.IDField, s.config.KeyField},
			clock: clockReader{unit: s.config.TimeUnit, zone: s.zone},
		},
		appender: a,
		slots:    make(chan struct{}, s.config.MaxInFlight),
		stopping: stopping,
		name:     newNames(),
		now:      s.now,
		counts:   &s.counts,
	}
}

// newNames returns a source of Positions for events without an id: unique without
// anything to remember across restarts.
func newNames() func() string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // it never fails; see crypto/rand
	prefix := "run:" + hex.EncodeToString(random[:]) + ":"
	var n atomic.Int64
	return func() string { return prefix + strconv.FormatInt(n.Add(1), 10) }
}
