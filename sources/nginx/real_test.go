package nginx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

const objectFormat = `log_format object escape=json '{"t":$msec,"request_uri":"$request_uri","agent":"$http_user_agent","up":$upstream_response_time,"status":$status}';`

// server is a real nginx; a change is a request.
type server struct {
	*services.Nginx
	section string

	mu       sync.Mutex
	requests int
}

func startNginx(t *testing.T, directive, name string) *server {
	t.Helper()
	n, err := services.StartNginx(t.Context(), services.NginxOptions{HTTP: directive, Format: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	format := "combined"
	if directive != "" {
		format = directive
	}
	quoted, err := json.Marshal(format)
	if err != nil {
		t.Fatal(err)
	}
	return &server{Nginx: n, section: fmt.Sprintf("{paths: ['%s*'], format: %s, rotate_wait: 500ms}", n.AccessLog(), quoted)}
}

func (s *server) Open(t *testing.T, once bool) pipeline.Source { return open(t, s.section, once) }

func (s *server) Write(ctx context.Context, n int) (ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		id := fmt.Sprintf("/request/%d", s.requests)
		s.requests++
		if err := s.get(ctx, id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *server) get(ctx context.Context, uri string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+uri, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (s *server) ID(r pipeline.Record) string {
	var v struct {
		URI string `json:"request_uri"`
	}
	if err := json.Unmarshal(r.Value, &v); err != nil || v.URI == "" {
		return fmt.Sprintf("not a request: %s", r.Value)
	}
	return v.URI
}

// Disturb rotates as logrotate does: by renaming and USR1, or, without a request in
// between, by copying and truncating. Sometimes nginx is restarted.
func (s *server) Disturb(ctx context.Context, rng *rand.Rand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 98; i >= 1; i-- {
		err := os.Rename(fmt.Sprintf("%s.%d", s.AccessLog(), i), fmt.Sprintf("%s.%d", s.AccessLog(), i+1))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	switch rng.IntN(3) {
	case 0:
		// The line of a request is written after its answer: nginx must be done with it.
		if err := s.settled(ctx); err != nil {
			return err
		}
		text, err := os.ReadFile(s.AccessLog())
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.AccessLog()+".1", text, 0o644); err != nil {
			return err
		}
		return os.Truncate(s.AccessLog(), 0)
	case 1:
		if err := os.Rename(s.AccessLog(), s.AccessLog()+".1"); err != nil {
			return err
		}
		return s.Reopen(ctx)
	}
	http.DefaultClient.CloseIdleConnections()
	return s.Restart(ctx)
}

// settled waits until the last request is in the log, or in one that it was rotated to:
// the worker may write to that one after the new log is there.
func (s *server) settled(ctx context.Context) error {
	last := fmt.Appendf(nil, "/request/%d", s.requests-1)
	for s.requests > 0 && ctx.Err() == nil {
		logs, err := filepath.Glob(s.AccessLog() + "*")
		if err != nil {
			return err
		}
		for _, path := range logs {
			if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, last) {
				return err
			}
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func TestConformanceWithRealNginx(t *testing.T) {
	t.Parallel()
	for name, directive := range map[string]string{"combined": "", "object": objectFormat} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// nginx writes a line after its answer, by one worker: in order, but another
			// connection's request may come first.
			sourcetest.Run(t, func(t *testing.T) sourcetest.Origin { return startNginx(t, directive, name) },
				sourcetest.Options{Kills: 20, Unordered: true, Lagging: true})
		})
	}
}

// What clients really send.
func TestRealNginxWithStrangeRequests(t *testing.T) {
	t.Parallel()
	for name, directive := range map[string]string{"combined": "", "object": objectFormat} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startNginx(t, directive, name)
			requests := []string{
				"\x16\x03\x01\x00\xf5\x01\x00\x00\xf1\x03\x03\x9d\xff\n\n",
				"\r\n\r\n\r\n",
				"GET http://other.example/absolute HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n",
				"GET /\"quoted\" HTTP/1.0\r\nUser-Agent: a \"b\" \\ \xff\xfe \x01\r\n\r\n",
				"GET /" + strings.Repeat("x", 7000) + " HTTP/1.0\r\n\r\n",
				"GET /nine\r\n",
				"\x00\x01\x02",
				"GET / HTTP/1.0\r\nUser-Agent: \xe2\x82\xac\r\n\r\n",
			}
			for _, r := range requests {
				send(t, s.Addr, r)
			}
			if err := s.Stop(); err != nil { // then all lines are written
				t.Fatal(err)
			}
			text, err := os.ReadFile(s.AccessLog())
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Count(string(text), "\n")
			if lines < len(requests)-2 {
				t.Fatalf("nginx logged %d lines for %d requests:\n%s", lines, len(requests), text)
			}
			j := sourcetest.NewJournal()
			source := s.Open(t, true)
			_, emitter := j.Start(nil, source)
			if err := source.Run(t.Context(), "", emitter); err != nil {
				t.Fatal(err)
			}
			records := j.Records()
			if len(records) != lines {
				t.Errorf("got %d records of %d lines", len(records), lines)
			}
			for _, r := range records {
				var v map[string]any
				if err := json.Unmarshal(r.Value, &v); err != nil || v["unparsed"] != nil {
					t.Errorf("the line of a real nginx was not understood: %s (%v)", r.Value, err)
				}
				if len(r.Headers) != 0 {
					t.Errorf("got the headers %q for %s, want the time of the line", r.Headers, r.Value)
				}
			}
		})
	}
}

// send writes raw bytes and waits for nginx to close the connection.
func send(t *testing.T, addr, request string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c) // a reset is an answer too
}
