package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/daybook-data/daybook/internal/connlimit"
)

// most is how many connections are held at a time on one address: it is for a few who measure and ask.
const most = 128

// Options say what a Server answers with.
type Options struct {
	// Ready returns why data does not move; nil while it does.
	Ready func() error
	// Status returns what /status shows, as JSON.
	Status func() any
	// Collectors are exported at /metrics, beside those of the Go runtime and the process.
	Collectors []prometheus.Collector
	Version    string
	Log        *slog.Logger
}

// Server answers /live, /ready, /status and /metrics. It only reads: there is nothing
// that a request could change.
type Server struct {
	http *http.Server
}

// New returns a server for the given process.
func New(o Options) (*Server, error) {
	registry := prometheus.NewRegistry()
	all := append([]prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version(o.Version),
	}, o.Collectors...)
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(o.Status()); err != nil {
			o.Log.Debug("answering /status", "error", err)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &Server{http: &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}}, nil
}

// version is a metric with the value 1 and the version as its label.
func version(v string) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "daybook_build_info", Help: "Version of this process; always 1.",
	}, []string{"version"})
	g.WithLabelValues(v).Set(1)
	return g
}

// Serve answers on l until ctx ends, which is no error. It may be called for several
// listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	if err := s.http.Serve(connlimit.New(l, connlimit.Share(most, 8), nil)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}
