package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
)

// keptFor is how long a connection to a node that was not given stays after it was needed last.
const keptFor = 30 * time.Second

// link is an upstream and the connection to it, which it makes again as often as it ends.
type link struct {
	o       *Observer
	address string
	given   bool          // by Observe.Upstreams
	wake    chan struct{} // has room for one; wakes run, or the next round

	mu     sync.Mutex     // guards all below
	client *mirror.Client // nil: not connected
	ends   map[metadata.StreamJournal]mirror.End
	round  time.Time // when ends were answered last on this connection
	needed time.Time // when it was needed last; of one that was not given
	err    error     // why it is not connected, nil if it is or was not tried
}

func newLink(o *Observer, address string, given bool) *link {
	return &link{o: o, address: address, given: given, wake: make(chan struct{}, 1)}
}

// look has ends asked for now.
func (l *link) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// want says whether the upstream is needed.
func (l *link) want(needed bool, now time.Time) {
	if !needed {
		return
	}
	l.mu.Lock()
	first := l.needed.IsZero()
	l.needed = now
	l.mu.Unlock()
	if first {
		l.look()
	}
}

func (l *link) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given || time.Since(l.needed) < keptFor
}

func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client != nil && !l.round.IsZero()
}

// end is how far the upstream has a journal, and whom to ask for it; ok is false if it does not have it.
func (l *link) end(k metadata.StreamJournal) (e mirror.End, c *mirror.Client, round time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		return e, nil, l.round, false
	}
	e, ok = l.ends[k]
	return e, l.client, l.round, ok
}

// run keeps the upstream connected while it is wanted, until ctx ends.
func (l *link) run(ctx context.Context) {
	told := retry.Told{}
	backoff := 50 * time.Millisecond
	for ctx.Err() == nil {
		if !l.wanted() {
			select {
			case <-l.wake:
			case <-time.After(roundEvery):
			case <-ctx.Done():
			}
			continue
		}
		since := time.Now()
		err := l.follow(ctx)
		l.lost(err)
		var refused *transport.RefusedError
		switch {
		case ctx.Err() != nil || err == nil:
		case errors.As(err, &refused) && told.Fresh("refused", refused.Reason):
			l.o.logger.Error("an upstream does not want this observer: correct the address, or the cluster's settings", "upstream", l.address, "error", err)
		case l.given && told.Fresh("lost", retry.Gist(err)):
			l.o.logger.Warn("an upstream cannot be pulled from; trying again", "upstream", l.address, "error", err)
		}
		if time.Since(since) > 10*time.Second { // it worked
			clear(told)
			backoff = 50 * time.Millisecond
		}
		retry.Pause(ctx, backoff)
		backoff = min(2*backoff, 2*time.Second)
	}
}

// follow connects and asks for all that is not asked for by the pullers, until the connection ends.
func (l *link) follow(ctx context.Context) error {
	o := l.o
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	conn, r, err := transport.Observe(ctx, transport.Options{Dial: o.o.Dial, TLS: o.o.TLS, Timeout: o.o.Timeout}, l.address, o.o.Meta.ClusterID(), "observer-"+o.o.Name)
	var refused *transport.RefusedError
	if errors.As(err, &refused) && refused.Foreign {
		return o.strange(err)
	}
	if err != nil {
		return err
	}
	c := mirror.NewClient(conn, r, o.memory, o.o.Timeout)
	l.mu.Lock()
	l.client, l.ends, l.round, l.err = c, map[metadata.StreamJournal]mirror.End{}, time.Time{}, nil
	l.mu.Unlock()
	ended := make(chan error, 3)
	all.Go(func() { ended <- c.Run(ctx) })
	all.Go(func() { ended <- l.describe(ctx, c) })
	all.Go(func() { ended <- l.rounds(ctx, c) })
	return <-ended
}

// lost notes the end of the connection.
func (l *link) lost(err error) {
	l.mu.Lock()
	l.client, l.ends, l.round, l.err = nil, nil, time.Time{}, err
	l.mu.Unlock()
	l.o.poke()
}

// describe takes over what streams there are, until there is an error.
func (l *link) describe(ctx context.Context, c *mirror.Client) error {
	for {
		floor, sum := l.o.described()
		d, news, err := c.Describe(ctx, floor, sum)
		if err != nil {
			return err
		}
		if news {
			if err := l.o.take(ctx, d); err != nil {
				return fmt.Errorf("following the streams of %s: %w", l.address, err)
			}
		}
	}
}

// rounds asks how far the journals go until there is an error, or the upstream is not wanted any more.
func (l *link) rounds(ctx context.Context, c *mirror.Client) error {
	for l.wanted() {
		changed, err := c.Ends(ctx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		first := l.round.IsZero()
		l.round = time.Now()
		news := first
		for _, e := range changed {
			k := keyOf(e.Key)
			_, known := l.ends[k]
			news = news || known == e.Gone
			if e.Gone {
				delete(l.ends, k)
			} else {
				l.ends[k] = e
			}
		}
		l.mu.Unlock()
		if news {
			l.o.poke()
		}
		select {
		case <-l.wake:
		case <-time.After(roundEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (o *Observer) described() (floor uint64, sum [32]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.floor, o.sum
}

// putAtOnce bounds the streams of one command.
const putAtOnce = 256

// take brings the metadata here to a description, unless it is older than the last one.
func (o *Observer) take(ctx context.Context, told mirror.Description) error {
	o.telling.Lock()
	defer o.telling.Unlock()
	if floor, sum := o.described(); told.Applied < floor || told.Sum == sum {
		return nil
	}
	var d metadata.Description
	if err := json.Unmarshal(told.Body, &d); err != nil {
		return fmt.Errorf("reading the description: %w", err)
	}
	if err := o.adopt(ctx, d.Cluster); err != nil {
		return err
	}
	for _, c := range o.commands(&d, told.Applied) {
		if _, err := o.o.Propose(ctx, metadata.Command{Mirror: c}); err != nil {
			return err
		}
	}
	o.mu.Lock()
	o.floor, o.sum = told.Applied, told.Sum
	o.mu.Unlock()
	o.o.Known()
	if len(d.Members) > 0 {
		o.mu.Lock()
		o.members = d.Members
		o.mu.Unlock()
		o.poke()
		return o.o.File.Update(func(i *datadir.Identity) { i.Peers = d.Members })
	}
	return nil
}

// adopt makes sure that the upstream is of the observer's cluster, whose id the first one tells.
func (o *Observer) adopt(ctx context.Context, cluster string) error {
	own := o.o.Meta.ClusterID()
	if own == "" && cluster != "" {
		v, err := o.o.Propose(ctx, metadata.Command{Found: &metadata.Found{ClusterID: cluster}})
		if err != nil {
			return err
		}
		own = v.(string)
	}
	if own != cluster {
		return o.strange(fmt.Errorf("it is of cluster %q, this observer of %q", cluster, own))
	}
	return nil
}

// strange adds what to do where the upstream is of another cluster.
func (o *Observer) strange(err error) error {
	return fmt.Errorf("%w; if that is the cluster to observe now, as this one's own was given up or founded anew, stop the observer and start it with an empty folder in place of %s", err, o.o.Dir)
}

// commands are what has to change here.
func (o *Observer) commands(d *metadata.Description, applied uint64) []*metadata.MirrorStreams {
	known := map[metadata.StreamID]*metadata.Stream{}
	for _, s := range o.o.Meta.Streams() {
		known[s.ID] = s
	}
	last := &metadata.MirrorStreams{Applied: applied, Access: d.Access}
	var put []*metadata.Stream
	for _, s := range d.Streams {
		if old, ok := known[s.ID]; !ok || !sameStream(old, s) {
			put = append(put, s)
		}
		delete(known, s.ID)
	}
	for id := range known {
		last.Gone = append(last.Gone, id)
	}
	slices.SortFunc(last.Gone, func(a, b metadata.StreamID) int { return slices.Compare(a[:], b[:]) })
	all := []*metadata.MirrorStreams{last}
	for part := range slices.Chunk(put, putAtOnce) {
		all = append(all, &metadata.MirrorStreams{Put: part})
	}
	// What goes first frees names; the last one carries what all of it comes to.
	if len(all) > 1 {
		all[0], all[len(all)-1].Applied = &metadata.MirrorStreams{Gone: last.Gone, Access: last.Access}, applied
	}
	return all
}

// sameStream says that nothing about a stream differs that an observer is told.
func sameStream(a, b *metadata.Stream) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
