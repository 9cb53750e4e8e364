package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// refreshAfter is how old fetched keys may be before they are fetched again.
	refreshAfter = 10 * time.Minute
	// fetchEvery is how long to wait after one fetch for the next: anybody can send a token
	// that names a key nobody has.
	fetchEvery = 10 * time.Second
	// fetchTimeout bounds one fetch.
	fetchTimeout = 5 * time.Second
	// maxKeysBytes bounds what is taken for a JWKS.
	maxKeysBytes = 1 << 20
)

// address is keys behind an https address.
type address struct {
	url, algorithm string
	log            *slog.Logger
	client         *http.Client

	// turn holds a token while someone looks at what follows, perhaps fetching it.
	turn    chan struct{}
	set     keySet // nil before the first
	fetched time.Time
	tried   time.Time
	err     error // of the last try
}

func newAddress(at, algorithm string, log *slog.Logger) (*address, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("the address of the keys: %w", err)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("keys from %s can be anybody's: it must be https", at)
	}
	client := &http.Client{
		Timeout:   fetchTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: fetchTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects elsewhere: give the address where the keys are")
		},
	}
	return &address{url: at, algorithm: algorithm, log: log, client: client, turn: make(chan struct{}, 1)}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// named implements keySource. Keys are fetched when they have become old, and when one is
// asked for that is new; while that fails those of the last time stay in use.
func (a *address) named(ctx context.Context, id string) ([]any, error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.turn }()
	found, err := a.set.find(id)
	stale := time.Since(a.fetched) > refreshAfter || errors.Is(err, errUnknownKey)
	if stale && time.Since(a.tried) > fetchEvery {
		a.fetch(ctx)
		found, err = a.set.find(id)
	}
	if a.set == nil {
		return nil, a.err
	}
	return found, err
}

// fetch fetches the keys; the caller has the turn.
func (a *address) fetch(ctx context.Context) {
	// What one client asked for is for all: it does not end with that client.
	set, err := a.get(context.WithoutCancel(ctx))
	a.tried, a.err = time.Now(), err
	if err != nil {
		a.err = fmt.Errorf("fetching the keys of tokens from %s: %w", a.url, err)
		a.log.Warn("the keys of tokens can't be fetched; those of the last time, if any, stay in use", "address", a.url, "error", err)
		return
	}
	a.set, a.fetched = set, a.tried
}

func (a *address) get(ctx context.Context) (keySet, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxKeysBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeysBytes {
		return nil, fmt.Errorf("it sends more than %d bytes", maxKeysBytes)
	}
	return parseKeys(text, a.algorithm)
}
