package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// profiles are what is asked of a node, but for its CPU.
var profiles = map[string]string{"heap.pprof": "heap?gc=1", "heap.txt": "heap?debug=1", "goroutines.txt": "goroutine?debug=1"}

// profile writes what Daybook's nodes do for some seconds to the folder that was asked for, if one was.
func (b *bed) profile(ctx context.Context, what string) error {
	if b.o.profiles == "" || b.name != "daybook" {
		return nil
	}
	errs := make([]error, len(b.members))
	var all sync.WaitGroup
	for i, m := range b.members {
		all.Go(func() {
			to := filepath.Join(b.o.profiles, fmt.Sprintf("%s-%d-", what, m.id))
			seconds := max(1, int(b.seconds/time.Second))
			errs[i] = saveProfile(ctx, m.socket, fmt.Sprintf("profile?seconds=%d", seconds), to+"cpu.pprof")
			for file, query := range profiles {
				errs[i] = errors.Join(errs[i], saveProfile(ctx, m.socket, query, to+file))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// saveProfile asks the socket that only the owner of a node's folder can reach.
func saveProfile(ctx context.Context, socket, query, file string) (err error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daybook/debug/pprof/"+query, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", query, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s", query, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
