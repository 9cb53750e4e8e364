package observer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
)

const (
	// memoryBytes bounds what was received from upstreams and is not yet stored.
	memoryBytes = 64 << 20
	// roundEvery is how often each upstream is asked how far its journals go.
	roundEvery = time.Second
	// sureFor is for how long what an upstream has said counts as what there is.
	sureFor = 3 * time.Second
)

// Options are what an observer is told and what it needs of its node. All is required unless it says otherwise.
type Options struct {
	// Upstreams are the addresses to pull from, those preferred first.
	Upstreams []string
	// Listener is where further observers connect. It belongs to the observer. Nil: they cannot.
	Listener net.Listener
	// TLS is used on both sides of every connection. Nil is none.
	TLS *tls.Config
	// Dial opens a connection to an upstream; over TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout is for how long nothing may come from an upstream until another one is taken; 5 s if 0.
	Timeout time.Duration

	// Name is how the node calls itself to others, Dir its directory, as an operator knows it.
	Name, Dir string
	Logger    *slog.Logger
	// File is the node's: the addresses of the cluster's nodes are noted there.
	File *datadir.File
	// Meta is the node's metadata, Propose changes it and returns when the change is there.
	Meta    *metadata.State
	Propose func(context.Context, metadata.Command) (any, error)
	// Copies are what is pulled into. Admit refuses to, while the disk is full.
	Copies Copies
	Admit  func() error
	// Figures count damage found and mended.
	Figures *raftgroup.CareFigures
	// Source serves further observers.
	Source *Source
	// Known is called when all streams are known that there are, and again when that has changed; Changed when streams were
	// made, changed or deleted here.
	Known, Changed func()
}

// Copies are the copies of journals that a node has.
type Copies interface {
	// Open returns a copy, which it opens, and makes, if need be. Errors are ErrUnknownStream and ErrUnknownPartition, where
	// there is no such journal (any more), and storage.ErrClosed, while it or the node is being closed.
	Open(metadata.StreamJournal) (*raftgroup.Group, error)
	// Opened returns a copy if it is open, or nil.
	Opened(metadata.StreamJournal) *raftgroup.Group
	// EachOpen calls f with all that are open.
	EachOpen(f func(metadata.StreamJournal, *raftgroup.Group))
}

// Observer keeps the copies of a node that is no member of the cluster. It is safe for concurrent use.
type Observer struct {
	o      Options
	logger *slog.Logger
	memory *mirror.Memory
	kick   chan struct{} // wakes Run
	rot    chan struct{} // wakes mend; has room for one, as has kick

	telling sync.Mutex // held while a description is taken over; before mu

	mu       sync.Mutex // guards all below
	links    []*link    // those given, in their order, then the other nodes'
	pullers  map[metadata.StreamJournal]*puller
	members  map[int32]string // nodes of the cluster that are not met yet, and their addresses
	floor    uint64           // the newest metadata that was seen
	sum      [32]byte         // of the description that is in the metadata here
	caughtUp bool             // all that there was when it was looked first is here
	wait     sync.WaitGroup
}

// New returns an observer that is to [Observer.Run]. The source's observer is this one from then on.
func New(o Options) (*Observer, error) {
	if len(o.Upstreams) == 0 {
		return nil, errors.New("an observer needs the address of a node, or of another observer, to pull from")
	}
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	obs := &Observer{
		o: o, logger: o.Logger, memory: mirror.NewMemory(memoryBytes),
		kick: make(chan struct{}, 1), rot: make(chan struct{}, 1),
		pullers: map[metadata.StreamJournal]*puller{}, members: o.File.Get().Peers, floor: o.Meta.Mirrored(),
	}
	o.Source.observer = obs
	return obs, nil
}

// Run follows the cluster until ctx ends.
func (o *Observer) Run(ctx context.Context) {
	for _, address := range o.o.Upstreams {
		o.addLink(ctx, address, true)
	}
	o.wait.Go(func() { o.followStreams(ctx) })
	o.wait.Go(func() { o.serve(ctx) })
	o.wait.Go(func() { o.mend(ctx) })
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		o.meet(ctx)
		o.assign(time.Now())
		select {
		case <-tick.C:
		case <-o.kick:
		case <-ctx.Done():
		}
	}
	o.wait.Wait()
}

// poke has Run look again at once.
func (o *Observer) poke() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// serve lets further observers connect until ctx ends.
func (o *Observer) serve(ctx context.Context) {
	if o.o.Listener == nil {
		return
	}
	select {
	case <-o.o.Source.o.Ready: // it knows its cluster
	case <-ctx.Done():
		_ = o.o.Listener.Close()
		return
	}
	t, err := transport.Open(transport.Options{
		Cluster: o.o.Meta.ClusterID(), Node: o.o.Name, Listener: o.o.Listener, TLS: o.o.TLS, Observe: o.o.Source.Serve, Silence: -1, Logger: o.logger,
	})
	if err != nil {
		o.logger.Error("further observers cannot connect", "error", err)
		_ = o.o.Listener.Close()
		return
	}
	<-ctx.Done()
	_ = t.Close() // the listener's error, of no use any more
}

// addLink makes an upstream known, unless it is.
func (o *Observer) addLink(ctx context.Context, address string, given bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil || slices.ContainsFunc(o.links, func(l *link) bool { return l.address == address }) {
		return
	}
	l := newLink(o, address, given)
	o.links = append(o.links, l)
	o.wait.Go(func() { l.run(ctx) })
}

// meet makes the nodes of the cluster known: they are asked where the given upstreams cannot help.
func (o *Observer) meet(ctx context.Context) {
	o.mu.Lock()
	members := o.members
	o.members = nil
	o.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(members)) {
		o.addLink(ctx, members[id], false)
	}
}

func (o *Observer) linkList() []*link {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.links)
}

func (o *Observer) pullerList() []*puller {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.pullers))
}

// followStreams has one puller for each journal that there is, until ctx ends.
func (o *Observer) followStreams(ctx context.Context) {
	defer func() {
		for _, p := range o.pullerList() {
			p.cancel()
		}
	}()
	for {
		changed := o.o.Meta.Changed()
		wanted := map[metadata.StreamJournal]bool{}
		for _, s := range o.o.Meta.Streams() {
			for j := range s.Journals {
				wanted[metadata.StreamJournal{Stream: s.ID, Journal: j}] = true
			}
		}
		o.keepPullers(ctx, wanted)
		o.o.Changed() // the files of deleted streams go, new journals are opened
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (o *Observer) keepPullers(ctx context.Context, wanted map[metadata.StreamJournal]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, p := range o.pullers {
		if !wanted[k] {
			p.cancel()
			delete(o.pullers, k)
		}
	}
	news := false
	for k := range wanted {
		if o.pullers[k] == nil {
			p := newPuller(ctx, o, k)
			o.pullers[k], news = p, true
			o.wait.Go(func() { p.run() })
		}
	}
	if news {
		for _, l := range o.links {
			l.look()
		}
	}
}

// assign chooses for each journal whom it is pulled from.
func (o *Observer) assign(now time.Time) {
	links := o.linkList()
	others := false // who was not given is needed
	given := false
	for _, l := range links {
		given = given || l.given && l.connected()
	}
	for _, p := range o.pullerList() {
		others = p.assign(links, now) || others
	}
	for _, l := range links {
		if !l.given {
			l.want(others || !given, now)
		}
	}
}
