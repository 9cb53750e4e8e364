package admin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/admin"
)

func TestServerAnswersWhatTheProcessSays(t *testing.T) {
	t.Parallel()
	var stuck error
	s, err := admin.New(admin.Options{
		Ready:   func() error { return stuck },
		Status:  func() any { return map[string]int{"lag": 7} },
		Version: "v1.2.3",
		Log:     slog.New(slog.DiscardHandler),
	})
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
	url := "http://" + l.Addr().String()

	expect(t, url+"/live", http.StatusOK, "ok")
	expect(t, url+"/ready", http.StatusOK, "ok")
	expect(t, url+"/status", http.StatusOK, `"lag": 7`)
	expect(t, url+"/metrics", http.StatusOK, `daybook_build_info{version="v1.2.3"} 1`)
	stuck = errors.New("sink search: 401 Unauthorized")
	expect(t, url+"/ready", http.StatusServiceUnavailable, "401 Unauthorized")

	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve after its context ended: %v, want nil", err)
	}
}

func expect(t *testing.T, url string, status int, text string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status || !strings.Contains(string(body), text) {
		t.Errorf("GET %s: %d %q, want %d with %q", url, resp.StatusCode, body, status, text)
	}
}
