package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/transport"
)

const (
	// observerMemory bounds what was received from upstreams and is not yet stored.
	observerMemory = 64 << 20
	// roundEvery is how often each upstream is asked how far its journals go.
	roundEvery = time.Second
	// sureFor is for how long what an upstream has said counts as what there is.
	sureFor = 3 * time.Second
)

// observer keeps the copies of an observing node. Locks: observer.mu, then puller.mu or link.mu, none of them during I/O.
type observer struct {
	n      *Node
	o      Observe
	logger *slog.Logger
	memory *mirror.Memory
	began  time.Time
	kick   chan struct{} // wakes assign
	rot    chan struct{} // wakes mend; has room for one, as has kick

	telling sync.Mutex // held while a description is taken over; before mu

	mu       sync.Mutex // guards all below
	links    []*link    // those given, in their order, then the other nodes'
	pullers  map[metadata.StreamJournal]*puller
	floor    uint64   // the newest metadata that was seen
	sum      [32]byte // of the description that is in the metadata here
	caughtUp bool     // all that there was when it was looked first is here
	wait     sync.WaitGroup
}

func newObserver(n *Node) *observer {
	o := *n.opts.Observe
	setDuration(&o.Timeout, 5*time.Second)
	return &observer{
		n: n, o: o, logger: n.logger, memory: mirror.NewMemory(observerMemory), began: time.Now(),
		kick: make(chan struct{}, 1), rot: make(chan struct{}, 1), pullers: map[metadata.StreamJournal]*puller{}, floor: n.meta.Mirrored(),
	}
}

func setDuration(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}

// runObserver starts what an observer needs.
func (n *Node) runObserver() error {
	if len(n.opts.Observe.Upstreams) == 0 {
		return errors.New("an observer needs the address of a node, or of another observer, to pull from")
	}
	if err := n.checkDirs(); err != nil {
		return err
	}
	n.observer = newObserver(n)
	if n.meta.ClusterID() != "" {
		close(n.ready) // what is here can be read, whoever is there
	}
	n.wg.Go(n.observer.run)
	n.runHouse()
	return nil
}

// run follows the cluster until the node closes.
func (o *observer) run() {
	ctx := o.n.ctx
	for _, address := range o.o.Upstreams {
		o.addLink(ctx, address, true)
	}
	o.meet(ctx, o.n.file.Get().Peers)
	o.wait.Go(func() { o.followStreams(ctx) })
	o.wait.Go(func() { o.serve(ctx) })
	o.wait.Go(func() { o.mend(ctx) })
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		o.assign(time.Now())
		select {
		case <-tick.C:
		case <-o.kick:
		case <-ctx.Done():
		}
	}
	o.wait.Wait()
}

// poke has assign look again at once.
func (o *observer) poke() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// serve lets further observers connect until ctx ends.
func (o *observer) serve(ctx context.Context) {
	if o.o.Listener == nil {
		return
	}
	select {
	case <-o.n.ready: // it knows its cluster
	case <-ctx.Done():
		_ = o.o.Listener.Close()
		return
	}
	t, err := transport.Open(transport.Options{
		Cluster: o.n.ClusterID(), Node: o.n.name(), Listener: o.o.Listener, TLS: o.o.TLS, Observe: o.n.serveObserver, Silence: -1, Logger: o.logger,
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
func (o *observer) addLink(ctx context.Context, address string, given bool) {
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
func (o *observer) meet(ctx context.Context, members map[int32]string) {
	for _, id := range slices.Sorted(maps.Keys(members)) {
		o.addLink(ctx, members[id], false)
	}
}

func (o *observer) linkList() []*link {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.links)
}

func (o *observer) pullerList() []*puller {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.pullers))
}

// followStreams has one puller for each journal that there is, until ctx ends.
func (o *observer) followStreams(ctx context.Context) {
	defer func() {
		for _, p := range o.pullerList() {
			p.cancel()
		}
	}()
	for {
		changed := o.n.meta.Changed()
		wanted := map[metadata.StreamJournal]bool{}
		for _, s := range o.n.meta.Streams() {
			for j := range s.Journals {
				wanted[metadata.StreamJournal{Stream: s.ID, Journal: j}] = true
			}
		}
		o.keepPullers(ctx, wanted)
		o.n.wake() // the files of deleted streams go, new journals are opened
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (o *observer) keepPullers(ctx context.Context, wanted map[metadata.StreamJournal]bool) {
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
func (o *observer) assign(now time.Time) {
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
