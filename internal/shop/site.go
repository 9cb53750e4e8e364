package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// Site is the shop's pages, behind nginx. It is used from one goroutine.
type Site struct {
	url      string
	rnd      *rand.Rand
	Requests int
}

// Visit asks for a page, which logs a line.
func (s *Site) Visit(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/item/%d?visit=%d", s.url, s.rnd.IntN(1000), s.Requests), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.Requests++
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// App posts events, as phones do: from several at once, with clocks that are behind, and
// again until they are accepted. It is safe for concurrent use.
type App struct {
	url    string
	seed   uint64
	client *http.Client

	posted   atomic.Int64
	accepted atomic.Int64
	inFlight atomic.Int64
}

func newApp(url string, seed uint64) *App {
	return &App{url: url, seed: seed, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

// Posted is the number of events so far, accepted or about to be.
func (a *App) Posted() int { return int(a.posted.Load()) }

// Accepted is the number of events that were answered with success.
func (a *App) Accepted() int { return int(a.accepted.Load()) }

// InFlight is the number of requests that were sent and are not yet answered.
func (a *App) InFlight() int { return int(a.inFlight.Load()) }

// Post sends one event until it is accepted; its id makes repeats harmless.
func (a *App) Post(ctx context.Context) error {
	n := a.posted.Add(1)
	rnd := rand.New(rand.NewPCG(a.seed, uint64(n)))
	ts := time.Now().Add(-time.Duration(rnd.IntN(1000)) * time.Millisecond)
	body, err := json.Marshal(map[string]any{"id": fmt.Sprintf("event-%d", n), "ts": ts.UTC().Format(time.RFC3339Nano), "what": "add-to-cart"})
	if err != nil {
		return err
	}
	err = Until(ctx, time.Minute, func(ctx context.Context) error { return a.send(ctx, body) })
	if err == nil {
		a.accepted.Add(1)
	}
	return err
}

func (a *App) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	a.inFlight.Add(1)
	defer a.inFlight.Add(-1)
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("posting an event: %s: %s", resp.Status, text)
	}
	return err
}
