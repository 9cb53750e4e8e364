package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/http"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Origin {
		return &application{prefix: fmt.Sprintf("app%d", sourcetest.Unique())}
	}, sourcetest.Options{Push: true})
}

// application posts events and, as applications should, posts them again under the
// same id until it gets an answer.
type application struct {
	prefix  string
	written int
	source  atomic.Pointer[http.Source]
}

func (a *application) Open(t *testing.T, once bool) pipeline.Source {
	s := open(t, "{listen: '127.0.0.1:0', id_field: id, time_field: at, timeout: 1s}", once)
	a.source.Store(s)
	return s
}

func (a *application) Write(ctx context.Context, n int) ([]string, error) {
	var ids []string
	for len(ids) < n {
		var lines bytes.Buffer
		for range min(7, n-len(ids)) {
			id := fmt.Sprintf("%s-%d", a.prefix, a.written)
			a.written++
			ids = append(ids, id)
			fmt.Fprintf(&lines, "{\"id\":%q,\"at\":\"2026-11-29T12:00:00.123456Z\"}\n", id)
		}
		if err := a.post(ctx, lines.Bytes()); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (a *application) post(ctx context.Context, body []byte) error {
	for {
		status, err := a.try(ctx, body)
		switch {
		case err == nil && status == nethttp.StatusOK:
			return nil
		case err == nil && status < 500 && status != nethttp.StatusTooManyRequests:
			return fmt.Errorf("got status %d", status)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		time.Sleep(time.Millisecond) // a client's pause between two attempts
	}
}

func (a *application) try(ctx context.Context, body []byte) (int, error) {
	s := a.source.Load()
	if s == nil || s.Addr() == "" {
		return nethttp.StatusServiceUnavailable, nil
	}
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, "http://"+s.Addr()+"/", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := nethttp.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (a *application) ID(r pipeline.Record) string {
	var event struct{ ID string }
	if err := json.Unmarshal(r.Value, &event); err != nil {
		return "not JSON: " + string(r.Value)
	}
	return event.ID
}
