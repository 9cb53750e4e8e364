package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/keepalive"
	"github.com/daybook-data/daybook/internal/load"
)

// death is a way in which a node goes.
type death struct {
	name string
	of   func(m member) error
	back func(ctx context.Context, m member) error
}

var (
	killed = death{"kill -9", func(m member) error { return m.kill() }, func(ctx context.Context, m member) error { return m.start(ctx) }}
	silent = death{"silent (SIGSTOP)", func(m member) error { return m.pause() }, func(_ context.Context, m member) error { return m.resume() }}
)

// failoverLoad takes a node away from 300 journals that a client writes to, and waits until all are led again.
func failoverLoad(d death) func(context.Context, *bed) ([]row, error) {
	return func(ctx context.Context, b *bed) ([]row, error) {
		streams, err := b.makeJournals(ctx)
		if err != nil {
			return nil, err
		}
		w, err := watchLeaders(b, streams)
		if err != nil {
			return nil, err
		}
		defer w.close()
		counts, err := w.ledBy(ctx, -1)
		if err != nil {
			return nil, err
		}
		m := b.members[b.streams/failoverStreams%len(b.members)] // another one each time
		r, err := b.failover(ctx, d, m, w, streams)
		if err != nil {
			return nil, fmt.Errorf("%s of node %d: %w", d.name, m.id, err)
		}
		r.what = d.name
		r.note = fmt.Sprintf("%d of 300 led; %s", counts[m.id], r.note)
		return []row{r}, b.dropAll(ctx, streams)
	}
}

func (b *bed) failover(ctx context.Context, d death, m member, w *leaders, streams []string) (r row, err error) {
	c, err := startWriting(b, streams)
	if err != nil {
		return row{}, err
	}
	defer c.stop()
	if err := rest(ctx, b.seconds/2); err != nil { // everything has been written to
		return row{}, err
	}
	before := c.most()
	start := time.Now()
	if err := d.of(m); err != nil {
		return row{}, err
	}
	_, err = w.ledBy(ctx, m.id)
	led := time.Since(start)
	if err == nil {
		err = rest(ctx, b.seconds/2) // what waits for its answer gets it
	}
	if err := errors.Join(err, d.back(ctx, m)); err != nil {
		return row{}, err
	}
	acked, err := c.stop()
	if err != nil {
		return row{}, err
	}
	err = b.awaitCount(ctx, streams, acked)
	return row{latency: c.latency.Latency(), note: fmt.Sprintf("led again after %.2f s; a client waited for an answer at most %.2f s (before: %.3f s)",
		led.Seconds(), c.most().Seconds(), before.Seconds())}, err
}

// awaitCount waits until there are as many records in streams as were acknowledged: leaders that have just changed may not
// know the end yet.
func (b *bed) awaitCount(ctx context.Context, streams []string, acked int64) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer c.Close()
	for give := time.Now().Add(time.Minute); ; {
		ends, err := kadm.NewClient(c).ListEndOffsets(ctx, streams...)
		if err = errors.Join(err, ends.Error()); err == nil {
			there := int64(0)
			ends.Each(func(o kadm.ListedOffset) { there += o.Offset })
			if there == acked {
				return nil
			}
			err = fmt.Errorf("%d records were acknowledged, %d are there", acked, there)
		}
		if time.Now().After(give) || rest(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// writing is an idempotent producer that writes to all partitions of some streams in turn, as records become due.
type writing struct {
	latency load.Histogram
	stop    func() (acked int64, err error)

	mu    sync.Mutex // guards all below
	acked int64
	err   error
	max   time.Duration
}

// writeEvery is how often each partition is written to.
const writeEvery = 300 * time.Millisecond

func startWriting(b *bed, streams []string) (*writing, error) {
	dialer := keepalive.New(new(net.Dialer).DialContext, slog.New(slog.DiscardHandler)) // as Daybook's workers
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.Dialer(dialer.DialContext), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.MetadataMinAge(50*time.Millisecond), kgo.MaxBufferedRecords(1<<20))
	if err != nil {
		return nil, err
	}
	w := &writing{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		gap := writeEvery / (failoverStreams * failoverJournals)
		_ = load.Pace(ctx, -1, gap, time.Time{}, func(turn int64, at time.Time) error { // ends with ctx
			running.Add(1)
			r := &kgo.Record{Topic: streams[turn%failoverStreams], Partition: int32(turn / failoverStreams % failoverJournals), Value: make([]byte, 100)}
			c.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
				defer running.Done()
				w.answered(time.Since(at), err)
			})
			return nil
		})
	})
	w.stop = sync.OnceValues(func() (int64, error) {
		cancel()
		running.Wait()
		c.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.acked, w.err
	})
	return w, nil
}

func (w *writing) answered(took time.Duration, err error) {
	w.latency.Add(took, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.acked++
	}
	w.err, w.max = errors.Join(w.err, err), max(w.max, took)
}

// most is the longest that a record waited for its answer.
func (w *writing) most() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.max
}
