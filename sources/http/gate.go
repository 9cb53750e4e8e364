package http

import (
	nethttp "net/http"
	"sync"
)

// gate knows which requests are being handled: the standard server, once closed,
// does not wait for them.
type gate struct {
	next nethttp.Handler

	mu     sync.Mutex
	closed bool // written under mu
	inside sync.WaitGroup
}

// ServeHTTP lets the request through unless the gate is closed.
func (g *gate) ServeHTTP(w nethttp.ResponseWriter, r *nethttp.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		writeJSON(w, nethttp.StatusServiceUnavailable, map[string]string{"error": "the source is stopping"})
		return
	}
	g.inside.Add(1)
	g.mu.Unlock()
	defer g.inside.Done()
	g.next.ServeHTTP(w, r)
}

// close lets nobody in any more and waits for those inside.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
