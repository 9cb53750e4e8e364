package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/pipeline"
)

// ready returns the first reason why data does not move in one of the pipelines.
func (r *running) ready() error {
	for _, s := range r.status() {
		if s.Ready {
			continue
		}
		for _, src := range s.Sources {
			if up(&src.Condition) == 0 {
				return fmt.Errorf("source %s is %s: %s", src.Name, src.State, reason(&src.Condition))
			}
		}
		for _, snk := range s.Sinks {
			if up(&snk.Condition) == 0 {
				return fmt.Errorf("sink %s is %s: %s", snk.Name, snk.State, reason(&snk.Condition))
			}
		}
	}
	return nil
}

// reason says why a source or sink does not run.
func reason(c *pipeline.Condition) string {
	if c.Waits != "" {
		return "waits for " + c.Waits
	}
	return c.Error
}

func (r *running) status() []pipeline.Status {
	all := make([]pipeline.Status, len(r.workers))
	for i, w := range r.workers {
		all[i] = w.Status()
	}
	return all
}

func (r *running) collectors() []prometheus.Collector {
	return []prometheus.Collector{collector{r.status}}
}

// StatusOptions are those of `daybook status`.
type StatusOptions struct {
	Where Where
	HTTP  string
	JSON  bool
	Out   io.Writer
	Log   *slog.Logger
}

// Status prints the state of a running worker's sources and sinks or, where none runs,
// the cursors that the journal holds.
func Status(ctx context.Context, o StatusOptions) error {
	if len(o.Where.Brokers) > 0 {
		return statusAt(ctx, o)
	}
	all, err := askStatus(ctx, o)
	if err != nil {
		return err
	}
	if all == nil {
		return cursors(ctx, o)
	}
	if o.JSON {
		enc := json.NewEncoder(o.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	return printStatus(o.Out, all, time.Now())
}

// statusAt prints what the journal at some brokers holds of a pipeline.
func statusAt(ctx context.Context, o StatusOptions) error {
	switch {
	case o.HTTP != "" || o.Where.Dir != "":
		return fmt.Errorf("%w: --brokers is for what the journal there holds: give it without --http and --data", ErrConfig)
	case o.Where.File == "":
		return fmt.Errorf("%w: --brokers says where the journal is, but not which pipeline's cursors to show: give --file as well", ErrConfig)
	}
	return cursors(ctx, o)
}

// askStatus asks the running worker; nil without an error is that none runs.
func askStatus(ctx context.Context, o StatusOptions) ([]pipeline.Status, error) {
	client := &http.Client{Timeout: reachPatience}
	url := "http://" + o.HTTP + "/status"
	if o.HTTP == "" {
		c, err := o.Where.config()
		if err != nil {
			return nil, err
		}
		if c.Dir == "" {
			return nil, nil
		}
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return nil, err
		}
		url = "http://worker/status"
		client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, running, err := dialSocket(ctx, dir, adminSocket)
			if err == nil && !running {
				err = errNotRunning
			}
			return conn, err
		}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: --http: %w", ErrConfig, err)
	}
	resp, err := client.Do(req)
	if errors.Is(err, errNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: asking the worker: %w", ErrEnvironment, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: asking the worker: %s", ErrEnvironment, resp.Status)
	}
	all := []pipeline.Status{}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("reading the worker's answer (is it a worker's address?): %w", err)
	}
	return all, nil
}

// errNotRunning says that no process has the journal's folder open.
var errNotRunning = errors.New("no worker runs")
