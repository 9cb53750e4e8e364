package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/internal/admin"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
)

// reachPatience is how long a verb waits for a journal that does not answer.
const reachPatience = 15 * time.Second

// embedded is what stands in for a broker's address where there is none: connections
// are pipes or the socket in the journal's folder.
const embedded = "embedded:9092"

// store is an embedded journal: the node and the Kafka face before it, in this process.
type store struct {
	dir    string
	node   *cluster.Node
	server *kafka.Server
}

// openStore opens the journal in a folder, which it makes. No other process can have it
// open.
func openStore(dir string, o kafka.Options, c cluster.Options, log *slog.Logger) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: making the journal's folder: %w", ErrEnvironment, err)
	}
	c.Dir, c.Logger = dir, log.With("component", "journal")
	n, err := cluster.Open(c)
	var locked *vfs.LockedError
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("%w: %w: a journal is open in one process at a time", ErrEnvironment, err)
	case unwritable(err):
		return nil, fmt.Errorf("%w: %w", ErrEnvironment, err)
	case err != nil:
		return nil, err
	}
	o.Node, o.Logger = n, log.With("component", "kafka")
	s, err := kafka.New(o)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return &store{dir: dir, node: n, server: s}, nil
}

// openAlone is openStore without a network, which nobody but a server has.
func openAlone(dir string, o kafka.Options, c cluster.Options, log *slog.Logger) (*store, error) {
	s, err := openStore(dir, o, c, log)
	if err == nil || errors.Is(err, ErrEnvironment) {
		return s, err
	}
	f, found, damaged := datadir.OpenFile(vfs.OS{}, dir)
	if damaged != nil || !found || len(f.Get().Peers) == 0 {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s is the folder of node %d of a cluster, and no server runs on it: start that server, or ask another node (--data with the folder of one that runs on this machine, --brokers with its address where the verb has it): %w",
		ErrEnvironment, dir, f.Get().Node, err)
}

// serveSocket lets other verbs reach the journal beside this process, until ctx ends.
func (s *store) serveSocket(ctx context.Context) error {
	l, err := listenSocket(s.dir, kafkaSocket)
	if err != nil {
		return err
	}
	return s.server.Serve(ctx, l, kafka.Access{Trusted: true})
}

// serveOwner answers what the folder's owner asks: profiles, records by key, and how the cluster is and what is to become
// of it.
func (s *store) serveOwner(ctx context.Context) error {
	l, err := listenSocket(s.dir, ownerSocket)
	if err != nil {
		return err
	}
	handlers := s.clusterHandlers()
	handlers["GET /records"] = s.serveRecords
	return admin.ServeOwner(ctx, l, handlers)
}

func (s *store) dial(ctx context.Context, _, _ string) (net.Conn, error) { return s.server.Dial(ctx) }

func (s *store) close() error { return errors.Join(s.server.Close(), s.node.Close()) }

// stores opens each folder once, however many pipelines share it.
type stores struct {
	log *slog.Logger

	mu   sync.Mutex
	open map[string]*store // by absolute path
}

func newStores(log *slog.Logger) *stores { return &stores{log: log, open: map[string]*store{}} }

// journal returns a client of the journal that c names; an embedded one is opened.
func (s *stores) journal(ctx context.Context, c pipeline.JournalConfig) (*pipeline.Journal, error) {
	if len(c.Brokers) > 0 {
		return reach(ctx, journalOptions(c, s.log))
	}
	st, err := s.store(c.Dir, c.Disk)
	if err != nil {
		return nil, err
	}
	o := journalOptions(c, s.log)
	o.Seeds, o.Dialer, o.Remote = []string{embedded}, st.dial, false
	return reach(ctx, o)
}

func (s *stores) store(dir string, disk *pipeline.DiskConfig) (*store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[abs]; st != nil {
		return st, nil
	}
	o, err := diskOptions(disk)
	if err != nil {
		return nil, err
	}
	st, err := openAlone(abs, kafka.Options{Advertised: embedded}, cluster.Options{Disk: o}, s.log)
	if err != nil {
		return nil, err
	}
	s.open[abs] = st
	return st, nil
}

// all returns the open stores.
func (s *stores) all() []*store {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*store
	for _, st := range s.open {
		list = append(list, st)
	}
	return list
}

func (s *stores) close() error {
	var errs []error
	for _, st := range s.all() {
		errs = append(errs, st.close())
	}
	return errors.Join(errs...)
}

func journalOptions(c pipeline.JournalConfig, log *slog.Logger) pipeline.JournalOptions {
	return pipeline.JournalOptions{
		Seeds: c.Brokers, TLS: c.TLS, SASL: c.SASL, Remote: true, Compress: c.Compress, Mode: c.Mode, Retain: c.Retain,
		Log: log.With("component", "journal client"),
	}
}

// reach opens a client and waits for the first answer.
func reach(ctx context.Context, o pipeline.JournalOptions) (*pipeline.Journal, error) {
	j, err := pipeline.OpenJournal(o)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	if err := j.Ping(wait); err != nil {
		j.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	return j, nil
}
