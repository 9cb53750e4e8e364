package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/internal/admin"
	"github.com/daybook-data/daybook/pipeline"
)

// ServerOptions are those of `daybook server`.
type ServerOptions struct {
	// File is the path of a server's file. Where it is given those that follow up to Log
	// are not.
	File      string
	Dir       string
	Kafka     string
	Advertise string
	HTTP      string
	Cluster   ClusterConfig // no cluster where Listen is empty
	Disk      pipeline.DiskConfig
	Log       *slog.Logger
	Version   string
}

// file returns what there is to serve, be it said in a file or by flags.
func (o ServerOptions) file() (*ServerFile, error) {
	if o.File != "" {
		return LoadServerFile(o.File)
	}
	if o.Dir == "" {
		return nil, fmt.Errorf("%w: the folder is missing: say --data DIR or --config FILE", ErrConfig)
	}
	if err := o.checkAddresses(); err != nil {
		return nil, err
	}
	f := &ServerFile{Data: o.Dir, HTTP: o.HTTP, Disk: o.Disk, Listeners: []ListenerConfig{{Address: o.Kafka, Advertise: o.Advertise}}}
	switch {
	case o.Cluster.Listen != "", o.Cluster.observes():
		f.Cluster = &o.Cluster
	case len(o.Cluster.Join) > 0 || o.Cluster.Rack != "" || o.Cluster.Advertise != "":
		return nil, fmt.Errorf("%w: --join, --rack and --cluster-advertise go with --cluster, which says where the other nodes connect", ErrConfig)
	}
	return f, f.reachable()
}

// checkAddresses wants of the flags what a file's rules want of its fields.
func (o ServerOptions) checkAddresses() error {
	for _, given := range []struct {
		flag      string
		addresses []string
	}{
		{"--kafka", []string{o.Kafka}}, {"--advertise", []string{o.Advertise}}, {"--http", []string{o.HTTP}}, {"--cluster", []string{o.Cluster.Listen}},
		{"--cluster-advertise", []string{o.Cluster.Advertise}}, {"--join", o.Cluster.Join}, {"--observe", o.Cluster.Observe},
	} {
		for _, address := range given.addresses {
			if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
				return fmt.Errorf("%w: %s %q is not host:port", ErrConfig, given.flag, address)
			}
		}
	}
	return nil
}

// reachable refuses addresses that other nodes or their clients can't connect to.
func (f *ServerFile) reachable() error {
	if f.Cluster == nil || f.Cluster.observes() {
		return nil
	}
	if f.Cluster.Advertise == "" && isWildcard(f.Cluster.Listen) {
		return fmt.Errorf("%w: --cluster %s is no address that other nodes can connect to: say one with --cluster-advertise", ErrConfig, f.Cluster.Listen)
	}
	if l := f.Listeners[0]; l.Advertise == "" && isWildcard(l.Address) {
		return fmt.Errorf("%w: --kafka %s is no address that clients of another node can be told: say one with --advertise", ErrConfig, l.Address)
	}
	return nil
}

// Serve serves the journal in a folder until ctx ends, which is no error.
func Serve(ctx context.Context, o ServerOptions) (err error) {
	f, err := o.file()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(f.Data)
	if err != nil {
		return err
	}
	disk, err := diskOptions(&f.Disk)
	if err != nil {
		return err
	}
	// All addresses are taken before the folder is touched, or anybody asked to let this node in: one that is not free changes
	// nothing.
	listeners, err := openListeners(f, o.Log)
	if err != nil {
		return err
	}
	defer listeners.close() // once more, for those that nothing serves yet
	network, err := f.network(o.Log)
	if err != nil {
		return err
	}
	observe, err := f.observe(o.Log)
	if err != nil {
		return err
	}
	if network != nil {
		network.Abandon = ctx.Done()
	}
	st, err := openStore(dir, f.options(), cluster.Options{Disk: disk, Network: network, Observe: observe, Version: o.Version}, o.Log)
	switch {
	case errors.Is(err, cluster.ErrAbandoned):
		return nil // stopped before it was let in
	case err != nil:
		return err
	}
	defer closing(st.close, &err)
	defer keepHeap()()
	return st.serve(ctx, listeners, f, o)
}

// serve serves all listeners of an open journal.
func (s *store) serve(ctx context.Context, listeners *listeners, f *ServerFile, o ServerOptions) error {
	ctx, stop := s.untilHandedOver(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.watchRemoval(ctx) })
	var prepared atomic.Bool
	page, err := admin.New(admin.Options{
		Ready: func() error {
			return errors.Join(ctx.Err(), s.node.Health(), s.node.Serving(), notYet(&prepared))
		},
		Status:     func() any { return s.status() },
		Collectors: []prometheus.Collector{diskCollector{func() []*store { return []*store{s} }}, soundCollector{func() []*store { return []*store{s} }}, kafkaCollector{s.server.Stats}, clusterCollector{s.node.Figures}, observerCollector{s.node.Observer()}},
		Version:    o.Version, Log: o.Log,
	})
	if err != nil {
		return err
	}
	if listeners.http != nil {
		group.Go(func() error { return page.Serve(ctx, listeners.http) })
	}
	group.Go(func() error { return s.serveSocket(ctx) })
	group.Go(func() error { return s.serveOwner(ctx) })
	group.Go(func() error {
		if err := s.prepare(ctx, listeners.kafka, f); err != nil || ctx.Err() != nil {
			return err
		}
		prepared.Store(true)
		for _, l := range listeners.kafka {
			group.Go(func() error { return s.server.Serve(ctx, l, l.access) })
		}
		o.Log.Info("serving", "dir", s.dir, "node", s.node.ID(), "kafka", slices.Sorted(maps.Values(announced(listeners.kafka))), "http", f.HTTP, "cluster", f.clusterAddress())
		return nil
	})
	return group.Wait()
}

// untilHandedOver returns a context that ends after ctx, when the node has handed over what it leads: until then its
// clients are served, and told of the new leaders.
func (s *store) untilHandedOver(ctx context.Context) (serving context.Context, stop func()) {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { // stop waits for it
		defer close(done)
		select {
		case <-ctx.Done():
			s.node.HandOver(serving)
			cancel()
		case <-serving.Done():
		}
	}()
	return serving, func() { cancel(); <-done }
}

// watchRemoval ends the server when its node is no part of the cluster any more.
func (s *store) watchRemoval(ctx context.Context) error {
	select {
	case <-s.node.Removed():
	case <-ctx.Done():
		return nil
	}
	select {
	case <-time.After(time.Second): // who asked for it here gets its answer
	case <-ctx.Done():
	}
	return s.node.Health()
}

// errNotYet is why a server is not ready that waits for most of its cluster's nodes.
var errNotYet = errors.New("waiting for the metadata: most of the cluster's nodes must be up")

func notYet(prepared *atomic.Bool) error {
	if prepared.Load() {
		return nil
	}
	return errNotYet
}

// prepare writes into the metadata what the file says: where clients find this node, and
// users. It waits for as long as the cluster has no leader.
func (s *store) prepare(ctx context.Context, listeners []listener, f *ServerFile) error {
	select {
	case <-s.node.Ready():
	case <-ctx.Done():
		return nil
	}
	err := s.node.Announce(ctx, announced(listeners))
	if err == nil {
		err = ensureUsers(ctx, s.node, f.Users)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
