package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// ServeOwner answers what only the owner of a process may ask: /debug/pprof/, as profiles show what it does and cost CPU
// time, and what more names, by pattern. It serves until ctx ends, which is no error. l must be a listener that only the
// owner can reach, never the admin pages' address.
func ServeOwner(ctx context.Context, l net.Listener, more map[string]http.HandlerFunc) error {
	mux := http.NewServeMux()
	for pattern, handler := range more {
		mux.HandleFunc(pattern, handler)
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	}
	return nil
}
