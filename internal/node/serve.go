package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/admin"
	"github.com/daybook-data/daybook/pipeline"
)

// ServerOptions are those of `daybook server`.
type ServerOptions struct {
	// File is the path of a server's file. Where it is given the five that follow are
	// not.
	File      string
	Dir       string
	Kafka     string
	Advertise string
	HTTP      string
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
		return nil, fmt.Errorf("%w: --data says no folder", ErrConfig)
	}
	return &ServerFile{Data: o.Dir, HTTP: o.HTTP, Disk: o.Disk, Listeners: []ListenerConfig{{Address: o.Kafka, Advertise: o.Advertise}}}, nil
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
	listeners, err := openListeners(f.Listeners, o.Log)
	if err != nil {
		return err
	}
	defer closeListeners(listeners) // once more, for those that nothing serves yet
	st, err := openStore(dir, f.options(), disk, o.Log)
	if err != nil {
		return err
	}
	defer closing(st.close, &err)
	defer raiseHeap()()
	if err := ensureUsers(ctx, st.node, f.Users); err != nil {
		return err
	}
	return st.serve(ctx, listeners, f.HTTP, o)
}

// serve serves all listeners of an open journal.
func (s *store) serve(ctx context.Context, listeners []listener, http string, o ServerOptions) error {
	group, ctx := errgroup.WithContext(ctx)
	page, err := admin.New(admin.Options{
		Ready:      func() error { return errors.Join(ctx.Err(), s.node.Health()) },
		Status:     func() any { return s.status() },
		Collectors: []prometheus.Collector{diskCollector{func() []*store { return []*store{s} }}},
		Version:    o.Version, Log: o.Log,
	})
	if err != nil {
		return err
	}
	if http != "" {
		h, err := net.Listen("tcp", http)
		if err != nil {
			return fmt.Errorf("%w: --http: %w", ErrEnvironment, err)
		}
		group.Go(func() error { return page.Serve(ctx, h) })
	}
	var addresses []string
	for _, l := range listeners {
		addresses = append(addresses, l.Addr().String())
		group.Go(func() error { return s.server.Serve(ctx, l, l.access) })
	}
	group.Go(func() error { return s.serveSocket(ctx) })
	group.Go(func() error { return s.serveOwner(ctx) })
	o.Log.Info("serving", "dir", s.dir, "kafka", addresses, "http", http)
	return group.Wait()
}
