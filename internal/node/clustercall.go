package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/status"
)

// clusterPatience is how long a verb waits for one answer.
const clusterPatience = 60 * time.Second

// clusterClient asks a running server, in whose folder it is, what `daybook cluster` wants to know and have done. Not safe
// for concurrent use.
type clusterClient struct {
	dir  string
	http *http.Client
}

// newClusterClient returns a client of the server that has a folder open.
func newClusterClient(dir string) (*clusterClient, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &clusterClient{dir: dir}
	c.http = &http.Client{Timeout: clusterPatience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, running, err := dialSocket(ctx, abs, ownerSocket)
			if err == nil && !running {
				err = errNotRunning
			}
			return conn, err
		},
	}}
	return c, nil
}

// ask makes one request.
func (c *clusterClient) ask(ctx context.Context, verb string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/cluster/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, errNotRunning):
		return fmt.Errorf("%w: no server runs on %s: --data names the folder of one that does, on this machine", ErrEnvironment, c.dir)
	case err != nil:
		return fmt.Errorf("%w: asking the server on %s: %w", ErrEnvironment, c.dir, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return json.NewDecoder(resp.Body).Decode(answer)
	case http.StatusConflict:
		var refusal clusterRefusal
		if err := json.NewDecoder(resp.Body).Decode(&refusal); err != nil {
			return fmt.Errorf("reading the answer of the server on %s: %w", c.dir, err)
		}
		if refusal.Asked {
			return fmt.Errorf("%w: %s", ErrConfig, strings.TrimPrefix(refusal.Error, ErrConfig.Error()+": "))
		}
		return errors.New(refusal.Error)
	}
	return fmt.Errorf("%w: the server on %s answers %s: is it an older build?", ErrEnvironment, c.dir, resp.Status)
}

// status returns the state of the cluster.
func (c *clusterClient) status(ctx context.Context) (s status.Cluster, err error) {
	return s, c.ask(ctx, "status", struct{}{}, &s)
}
