package admin_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/admin"
)

func TestTheOwnerIsServedUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "p.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- admin.ServeOwner(ctx, l, map[string]http.HandlerFunc{"GET /more": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "more") }})
	}()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://daybook/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(text), "ServeOwner") {
		t.Errorf("the goroutines are %q, %v; want this test's among them", text, err)
	}
	if answer, err = client.Get("http://daybook/more"); err != nil {
		t.Fatal(err)
	}
	text, err = io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || string(text) != "more" {
		t.Errorf("what was added answers %q, %v", text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
