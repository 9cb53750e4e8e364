package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/cluster/observer"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// Options are the settings of a Node. The zero value of each field but Dir means its default.
type Options struct {
	// Dir is the data directory; it is made if there is none. Required.
	Dir string
	// FS is the file system; the operating system's if nil.
	FS vfs.FS
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// Partitions is how many partitions a stream gets if nobody says; 1 if 0.
	Partitions int32
	// SegmentBytes is the size of the journals' segment files; storage's default
	// if 0.
	SegmentBytes int64
	// Disk says how the disk is watched.
	Disk disk.Options
	// Scrub says how the node looks after the bytes on its disk.
	Scrub ScrubOptions
	// RetainEvery is how often old segments are looked for; 30 s if 0.
	RetainEvery time.Duration
	// Network makes the node one of several; nil: it is alone, and needs none.
	Network *Network
	// Observe makes the node an observer of a cluster, which excludes Network.
	Observe *Observe
	// Version is the build that runs, for other nodes and operators to see.
	Version string
	// IdleHold is after how long without a commit a group that holds retention is
	// logged; 24 h if 0.
	IdleHold time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("no data directory given")
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Partitions = cmp.Or(o.Partitions, 1)
	o.RetainEvery = cmp.Or(o.RetainEvery, 30*time.Second)
	o.Scrub = o.Scrub.withDefaults()
	o.IdleHold = cmp.Or(o.IdleHold, 24*time.Hour)
	return o, nil
}

// Node owns the data directory of one node: its copy of the metadata and its copies of journals. Without Options.Network it
// is a cluster of one. It is safe for concurrent use.
type Node struct {
	opts        Options
	dir         datadir.Dir
	logger      *slog.Logger
	lock        io.Closer
	meta        *metadata.State
	metaGroup   *raftgroup.Machine
	proposer    *proposer
	producerIDs producerIDs
	cache       *storage.Cache
	strays      []string // folders on disk of streams that the metadata does not know
	disk        *disk.Disk
	answering   chan struct{} // closed when calls of other nodes may be answered: all above is set

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	kick   chan struct{} // wakes the housekeeper

	announced announced
	figures   raftgroup.CareFigures
	scrubs    atomic.Uint64 // rounds

	source   *observer.Source   // what observers get
	observer *observer.Observer // nil: the node is none
	started  time.Time
	closing  atomic.Bool // leads are handed over, and none is wanted back
	removal  removal
	reached  reachability

	id           int32
	file         *datadir.File
	trans        *transport.Transport // nil: the node is alone
	coordinating coordinating
	ready        chan struct{}
	leads        leadTable
	lastSeq      uint64 // of the entries proposed since the start; used by the proposer alone

	journals journals
	moves    *moves.Mover
}

// Open opens the data directory and its metadata. Journals are opened when they
// are first used, or soon after by the node itself, so that many of them do not
// delay the start. If another process has the directory the error is a
// *vfs.LockedError.
func Open(opts Options) (*Node, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{
		opts: opts, logger: opts.Logger, meta: metadata.New(),
		cache:   storage.NewCache(opts.Disk.CacheBytes),
		kick:    make(chan struct{}, 1),
		ready:   make(chan struct{}),
		started: time.Now(), removal: removal{done: make(chan struct{})},

		answering: make(chan struct{}),
	}
	n.leads.changed = make(chan struct{}, 1)
	n.coordinating.changed = make(chan struct{})
	n.disk = disk.New(opts.Disk, opts.Dir, opts.FS, n.logger)
	n.opts.FS = n.disk.FS()
	n.dir = datadir.Dir{FS: n.opts.FS, Path: opts.Dir}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", opts.Dir, err), n.Close())
	}
	return n, nil
}

func (n *Node) open() error {
	err := n.dir.Make(n.opts.Dir)
	if err != nil {
		return err
	}
	if n.lock, err = n.dir.Lock(); err != nil {
		return err
	}
	if err := n.identify(); err != nil {
		return err
	}
	if err := n.finishMeta(); err != nil {
		return err
	}
	if err := errors.Join(n.dir.Make(n.dir.Streams()), n.dir.Make(n.dir.Meta())); err != nil {
		return err
	}
	n.source = observer.NewSource(observer.SourceOptions{
		Meta: n.meta, Copies: &n.journals, File: n.file, Self: n.id, Logger: n.logger, Ready: n.ready,
	})
	if n.opts.Network != nil {
		if err := n.openNetwork(); err != nil {
			return err
		}
	}
	n.journals = journals{
		meta: n.meta, self: n.id, several: n.trans != nil, observes: n.Observes(), up: n.Up, leads: &n.leads, open: n.openJournal,
	}
	n.moves = moves.New(moves.Options{
		Alone: n.trans == nil, Self: n.id, Meta: n.meta, Logger: n.logger,
		Sync: n.SyncMeta, Up: n.Up, Lead: n.journals.lead, Needed: n.metadataNeeds,
		Propose: func(ctx context.Context, c metadata.Command) (any, error) { return n.proposer.propose(ctx, c) },
	})
	if n.metaGroup, err = n.openMeta(); err != nil {
		return err
	}
	if err := errors.Join(n.meta.Err(), n.checkMeta()); err != nil {
		return err
	}
	n.standFirst(n.metaGroup, false) // of a cluster of one
	n.proposer = newProposer(n.applyMeta, n.nextOrigin)
	if n.Observes() {
		n.proposer.may = observerMay
	}
	if err := n.disk.Measure(); err != nil {
		return err
	}
	close(n.answering)
	switch {
	case n.Observes():
		return n.runObserver()
	case n.trans == nil:
		return n.runAlone()
	}
	n.runNetwork()
	return nil
}

// runAlone starts what a node without others needs.
func (n *Node) runAlone() error {
	if err := n.checkDirs(); err != nil {
		return err
	}
	if n.meta.ClusterID() == "" {
		if _, err := n.proposer.propose(n.ctx, metadata.Command{Found: &metadata.Found{ClusterID: newClusterID()}}); err != nil {
			return err
		}
	}
	close(n.ready)
	n.runHouse()
	return nil
}

// runNetwork starts what one of several nodes needs.
func (n *Node) runNetwork() {
	n.wg.Go(n.followMembers)
	n.wg.Go(n.coordinate)
	n.wg.Go(n.control)
	n.wg.Go(n.keepReplicas)
	n.wg.Go(n.tellLeads)
	n.wg.Go(n.reconcileGroups)
	n.wg.Go(n.preferLeaders)
	n.wg.Go(n.settle)
	n.wg.Go(n.greetOthers)
	n.runHouse()
}

func (n *Node) runHouse() {
	n.wg.Go(n.keepHouse)
	n.wg.Go(n.scrub)
	n.wg.Go(func() { n.disk.Run(n.ctx, n.wake, n.stepAside) })
}

// newClusterID returns an id in the form that Kafka's tools expect: 16 random
// bytes in base64url.
func newClusterID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Close closes all journals and gives the directory back. Close what uses the
// node first; appends that are on their way are answered.
func (n *Node) Close() error {
	n.cancel()
	n.wg.Wait()
	errs := []error{n.journals.close()}
	if n.proposer != nil {
		n.proposer.close()
	}
	if n.metaGroup != nil {
		errs = append(errs, n.metaGroup.Close())
	}
	if n.trans != nil {
		errs = append(errs, n.trans.Close())
	} else if n.opts.Network != nil {
		_ = n.opts.Network.Listener.Close() // the transport would have
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}

// Meta returns the metadata, for reading.
func (n *Node) Meta() *metadata.State { return n.meta }

// Moves is what places and moves journals.
func (n *Node) Moves() *moves.Mover { return n.moves }

// ClusterID names the cluster for good.
func (n *Node) ClusterID() string { return n.meta.ClusterID() }

// CacheStats tells how many of the bytes that were read were in memory, and how
// much of it old data fills.
func (n *Node) CacheStats() storage.CacheStats { return n.cache.Stats() }
