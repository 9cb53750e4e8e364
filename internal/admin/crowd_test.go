package admin_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/admin"
)

// Who opens connections and asks nothing does not take all that the process may open, and when they go there is room again.
func TestACrowdIsTurnedAway(t *testing.T) {
	t.Parallel()
	s, err := admin.New(admin.Options{Ready: func() error { return nil }, Status: func() any { return nil }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	ask := func() (net.Conn, error) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(c, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
			_, err = http.ReadResponse(bufio.NewReader(c), nil)
		}
		return c, err
	}
	var idle []net.Conn
	for len(idle) < 1000 {
		c, err := ask()
		if err != nil {
			_ = c.Close()
			break
		}
		idle = append(idle, c)
	}
	if len(idle) == 1000 {
		t.Error("a thousand idle connections are held")
	}
	for _, c := range idle {
		_ = c.Close()
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + l.Addr().String() + "/live")
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
