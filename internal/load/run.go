package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	errOver    = errors.New("the run's time is over")
	errStalled = fmt.Errorf("%w: nothing more comes, and records are missing", ErrWrong)
)

// run is one run of the engine.
type run struct {
	o      Options
	t      *target
	corpus [][]byte
	end    time.Time // zero: none

	plainBytes, sentBytes int64 // of the prepared batches

	claimed       atomic.Int64 // records that producers have taken on
	produced      atomic.Int64 // records acknowledged
	consumed      atomic.Int64
	consumedBytes atomic.Int64 // plain if unpacked, else as stored

	limits         atomic.Pointer[offsets] // where reading ends; nil while it is unknown
	produceLatency Histogram
	readLatency    Histogram
}

type producer interface{ produce(context.Context) error }

type consumer interface{ consume(context.Context) error }

// Run does what the options say and returns what it measured. The errors are ErrOptions, ErrWrong, and those of the
// servers and the network.
func Run(ctx context.Context, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := openTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	r := &run{o: o, t: t}
	if o.Mode != Consume {
		r.corpus = Corpus(o.Corpus, o.Size)
	}
	producers, acked, err := r.producers(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, p := range producers {
			if p, raw := p.(*rawProducer); raw {
				p.close()
			}
		}
	}()
	before, err := t.ends(ctx)
	if err != nil {
		return nil, err
	}
	from := before
	if o.Mode == Consume {
		if from, err = t.starts(ctx); err != nil {
			return nil, err
		}
		r.limits.Store(&before)
	}
	report, err := r.measure(ctx, producers, from)
	if err != nil {
		return nil, err
	}
	if o.Mode == Consume {
		return report, nil
	}
	after, err := r.countEnds(ctx, before)
	if err != nil {
		return nil, err
	}
	if o.Verify {
		if err := r.verify(ctx, before, after, acked()); err != nil {
			return nil, err
		}
		report.Verified = true
	}
	return report, nil
}

// countEnds compares how the stream has grown with what was acknowledged.
func (r *run) countEnds(ctx context.Context, before offsets) (after offsets, err error) {
	for give := time.Now().Add(r.o.Patience); ; {
		if after, err = r.t.ends(ctx); err != nil {
			return nil, err
		}
		grown := after.sum() - before.sum()
		switch {
		case grown == r.produced.Load():
			return after, nil
		// What was acknowledged may be readable a little later, and without answers some is still on its way.
		case grown > r.produced.Load() || time.Now().After(give):
			return nil, fmt.Errorf("%w: %d records acknowledged, the stream has grown by %d", ErrWrong, r.produced.Load(), grown)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// measure runs producers and consumers and takes the times.
func (r *run) measure(ctx context.Context, producers []producer, from offsets) (*Report, error) {
	server, err := CPUOf(r.o.ServerPIDs...)
	if err != nil {
		return nil, err
	}
	client, start := OwnCPU(), time.Now()
	if r.o.Duration > 0 {
		r.end = start.Add(r.o.Duration)
	}
	var produceTime, consumeTime time.Duration
	group, ctx := errgroup.WithContext(ctx)
	if len(producers) > 0 {
		group.Go(func() error {
			err := r.produce(ctx, producers)
			produceTime = time.Since(start)
			if err != nil || r.o.Mode != Both {
				return err
			}
			ends, err := r.t.ends(ctx)
			r.limits.Store(&ends)
			return err
		})
	}
	if r.o.Mode != Produce {
		group.Go(func() error {
			err := r.consumeFrom(ctx, from)
			consumeTime = time.Since(start)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	clientUsed := OwnCPU() - client
	used, err := CPUOf(r.o.ServerPIDs...)
	return r.report(produceTime, consumeTime, clientUsed, used-server), err
}

// produce runs all producers to their end.
func (r *run) produce(ctx context.Context, producers []producer) error {
	group, ctx := errgroup.WithContext(ctx)
	if r.o.Raw && r.o.Rate > 0 {
		raws := make([]*rawProducer, len(producers))
		for i, p := range producers {
			raws[i] = p.(*rawProducer)
			raws[i].turns = make(chan time.Time, 1<<12)
		}
		group.Go(func() error { return dealTurns(ctx, r, raws) })
	}
	for _, p := range producers {
		group.Go(func() error { return p.produce(ctx) })
	}
	return group.Wait()
}

// consumeFrom runs consumers from the given places to the run's end.
func (r *run) consumeFrom(ctx context.Context, from offsets) error {
	shares, err := r.t.shares(r.o.Clients, true)
	if err != nil {
		return err
	}
	open := func(s share) consumer { return &appConsumer{run: r, share: s, at: clone(from)} }
	if r.o.Raw {
		open = func(s share) consumer { return &rawConsumer{run: r, share: s, at: clone(from)} }
	}
	if r.o.Mode == Consume && r.o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, r.end, errOver)
		defer cancel()
	}
	if err := r.consume(ctx, open, shares); !errors.Is(err, errOver) {
		return err
	}
	return nil
}

// consume runs one consumer a share until each has read its part.
func (r *run) consume(ctx context.Context, open func(share) consumer, shares []share) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range shares {
		group.Go(func() error { return open(s).consume(ctx) })
	}
	watched := r.watch(ctx, cancel)
	err := group.Wait()
	cancel(nil)
	<-watched
	return err
}

// watch ends reading when nothing has come for long although there is more.
func (r *run) watch(ctx context.Context, stop context.CancelCauseFunc) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(min(time.Second, r.o.Patience/4))
		defer tick.Stop()
		last, since := int64(-1), time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n := r.consumed.Load(); n != last || r.limits.Load() == nil {
				last, since = n, time.Now()
			} else if time.Since(since) > r.o.Patience {
				stop(errStalled)
				return
			}
		}
	}()
	return ended
}

// claim takes on n records; false when the run is over.
func (r *run) claim(ctx context.Context, n int64) bool {
	if ctx.Err() != nil || !r.end.IsZero() && !time.Now().Before(r.end) {
		return false
	}
	return r.o.Records == 0 || r.claimed.Add(n)-n < r.o.Records
}

// readAll says whether a consumer that stands there has read what it has to.
func (r *run) readAll(at offsets, partitions []int32) bool {
	if r.o.Mode == Consume && r.o.Records > 0 && r.consumed.Load() >= r.o.Records {
		return true
	}
	limits := r.limits.Load()
	if limits == nil {
		return false
	}
	for _, p := range partitions {
		if at[p] < (*limits)[p] {
			return false
		}
	}
	return true
}

func clone(o offsets) offsets { return maps.Clone(o) }
