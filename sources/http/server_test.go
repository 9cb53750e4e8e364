package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/http"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// open returns a source with the given section of YAML.
func open(t *testing.T, section string, once bool) *http.Source {
	t.Helper()
	var c http.Config
	if err := configs.Decode("test.yaml", []byte(section), &c); err != nil {
		t.Fatal(err)
	}
	s, err := c.OpenSource(pipeline.SourceEnv{Name: "app", Once: once, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*http.Source)
}

// server is a running source and the journal behind it.
type server struct {
	t       *testing.T
	source  *http.Source
	journal *sourcetest.Journal
	emitter *sourcetest.Emitter
	cancel  context.CancelFunc
	ended   chan error
	client  *nethttp.Client
	scheme  string
}

// serve runs a source with the given options beside listen.
func serve(t *testing.T, options string) *server {
	t.Helper()
	s := &server{t: t, journal: sourcetest.NewJournal(), ended: make(chan error, 1), client: &nethttp.Client{Transport: &nethttp.Transport{}}, scheme: "http"}
	s.source = open(t, "{listen: '127.0.0.1:0'"+options+"}", false)
	from, emitter := s.journal.Start(nil, s.source)
	s.emitter = emitter
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	go func() { s.ended <- s.source.Run(ctx, from, emitter) }()
	deadline := time.Now().Add(10 * time.Second)
	for s.source.Addr() == "" {
		select {
		case err := <-s.ended:
			t.Fatalf("Run returned %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the source does not listen")
		}
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.stop() })
	return s
}

func (s *server) stop() error {
	s.cancel()
	err := <-s.ended
	s.ended <- err
	return err
}

// answer is a response, its body decoded.
type answer struct {
	status int
	header nethttp.Header
	body   map[string]any
}

func (s *server) request(method, path, body string, headers ...string) answer {
	s.t.Helper()
	req, err := nethttp.NewRequest(method, s.scheme+"://"+s.source.Addr()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.do(req)
}

func (s *server) do(req *nethttp.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Error(err) // not Fatal: some tests call this beside their own goroutine
		return answer{}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			s.t.Errorf("the answer %q is not JSON: %v", raw, err)
		}
	}
	return a
}

// post posts JSON with further headers.
func (s *server) post(body string, headers ...string) answer {
	s.t.Helper()
	return s.request("POST", "/", body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// want checks an answer's status and the words in its error.
func (s *server) want(a answer, status int, words ...string) {
	s.t.Helper()
	text, _ := a.body["error"].(string)
	if a.status != status {
		s.t.Errorf("got status %d (%v), want %d", a.status, a.body, status)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("got the error %q, want it to say %q", text, w)
		}
	}
}

// wantStored checks what a successful answer counts, and the journal's values.
func (s *server) wantStored(a answer, accepted, duplicates int) {
	s.t.Helper()
	if a.status != nethttp.StatusOK || a.body["accepted"] != float64(accepted) || a.body["duplicates"] != float64(duplicates) {
		s.t.Errorf("got %d %v, want 200 with %d accepted and %d duplicates", a.status, a.body, accepted, duplicates)
	}
}

func (s *server) values() []string {
	var values []string
	for _, r := range s.journal.Records() {
		values = append(values, string(r.Value))
	}
	return values
}

// wantEmpty checks that nothing was appended.
func (s *server) wantEmpty() {
	s.t.Helper()
	if v := s.values(); len(v) != 0 {
		s.t.Errorf("the journal has %q, want nothing", v)
	}
}

func wantCanceled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v, want the context's error", err)
	}
}
