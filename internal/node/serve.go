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

	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/internal/admin"
)

// ServerOptions are those of `daybook server`.
type ServerOptions struct {
	Dir       string
	Kafka     string
	Advertise string
	HTTP      string
	Disk      DiskFlags
	Log       *slog.Logger
	Version   string
}

// Serve serves the journal in a folder until ctx ends, which is no error.
func Serve(ctx context.Context, o ServerOptions) (err error) {
	if o.Dir == "" {
		return fmt.Errorf("%w: --data says no folder", ErrConfig)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	disk, err := o.Disk.options()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Kafka)
	if err != nil {
		return fmt.Errorf("%w: --kafka: %w", ErrEnvironment, err)
	}
	st, err := openStore(dir, o.Advertise, disk, o.Log)
	if err != nil {
		l.Close()
		return err
	}
	defer closing(st.close, &err)
	page, err := admin.New(admin.Options{
		Ready:      func() error { return errors.Join(ctx.Err(), st.node.Health()) },
		Status:     func() any { return st.status() },
		Collectors: []prometheus.Collector{diskCollector{func() []*store { return []*store{st} }}},
		Version:    o.Version, Log: o.Log,
	})
	if err != nil {
		l.Close()
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return st.server.Serve(ctx, l, kafka.Access{}) })
	group.Go(func() error { return st.serveSocket(ctx) })
	group.Go(func() error { return st.serveOwner(ctx) })
	if o.HTTP != "" {
		h, err := net.Listen("tcp", o.HTTP)
		if err != nil {
			l.Close()
			return fmt.Errorf("%w: --http: %w", ErrEnvironment, err)
		}
		group.Go(func() error { return page.Serve(ctx, h) })
	}
	o.Log.Info("serving", "dir", dir, "kafka", l.Addr().String(), "http", o.HTTP)
	return group.Wait()
}
