package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/load"
)

// clusterNodes is how many processes a cluster is measured with.
const clusterNodes = 3

// clusterLoads are the loads of `make bench-cluster`, with the bars of docs/bench.
func clusterLoads() []journalLoad {
	both := []string{"daybook", "kafka"}
	return []journalLoad{
		{
			"cluster-json-1m", "3 x Kafka's records/s, 0.3 x its CPU-s/M of all three", replicated, both, clusterNodes,
			spread(produceLoad(load.Options{Clients: clusterNodes, Partitions: 3 * clusterNodes})),
		},
		{"cluster-ack", "p99 at 20 % load at most Kafka's", replicated, both, clusterNodes, spread(ackLoad)},
		{"cluster-killed", "300 journals led again in 1 s, no client waits for 3 s", replicated, both, clusterNodes, failoverLoad(killed)},
		{"cluster-silent", "300 journals led again in 6 s (3 election timeouts)", replicated, both, clusterNodes, failoverLoad(silent)},
		{"cluster-idle", "300 journals, 0.1 core and 50 MB a node", replicated, both, clusterNodes, clusterIdle},
	}
}

// spread has Daybook keep each stream in as many journals as there are nodes, so that all of them lead a part of it, as
// Kafka's do of the partitions of a topic.
func spread(run func(context.Context, *bed) ([]row, error)) func(context.Context, *bed) ([]row, error) {
	return func(ctx context.Context, b *bed) ([]row, error) {
		if b.name == "daybook" {
			defer func(s map[string]string) { b.settings = s }(b.settings)
			b.settings = b.journals(clusterNodes)
		}
		return run(ctx, b)
	}
}

// journals are the settings of a stream of n journals.
func (b *bed) journals(n int) map[string]string {
	s := maps.Clone(b.settings)
	s["daybook.journals"] = fmt.Sprint(n)
	return s
}

// 300 journals, in streams of as many as one may have at most.
const (
	failoverStreams  = 2
	failoverJournals = 150 // of each stream
)

// makeJournals makes streams of 300 partitions together, each of them a journal with a leader and copies of its own.
func (b *bed) makeJournals(ctx context.Context) (streams []string, err error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	settings := map[string]*string{}
	if b.name == "daybook" {
		for k, v := range b.journals(failoverJournals) {
			settings[k] = &v
		}
	}
	for range failoverStreams {
		name := b.stream()
		r, err := kadm.NewClient(c).CreateTopic(ctx, failoverJournals, int16(b.replicas), settings, name)
		if err = errors.Join(err, r.Err); err != nil {
			return nil, fmt.Errorf("making %s: %w", name, err)
		}
		streams = append(streams, name)
	}
	return streams, nil
}

// clusterIdle writes to 300 journals once, and then watches the nodes do nothing.
func clusterIdle(ctx context.Context, b *bed) ([]row, error) {
	streams, err := b.makeJournals(ctx)
	if err != nil {
		return nil, err
	}
	w, err := watchLeaders(b, streams)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if _, err := w.ledBy(ctx, -1); err != nil {
		return nil, err
	}
	if err := writeOnce(ctx, b, streams); err != nil {
		return nil, err
	}
	away := w.settled(ctx)
	if err := rest(ctx, 15*time.Second); err != nil { // what is written later is written, and what is no longer used given back
		return nil, err
	}
	var cores, rss, own float64 // the most of a node
	var before []time.Duration
	for _, pid := range b.pids {
		used, err := load.CPUOf(pid)
		if err != nil {
			return nil, err
		}
		before = append(before, used)
	}
	if err := rest(ctx, b.seconds); err != nil {
		return nil, err
	}
	for i, pid := range b.pids {
		used, err := load.CPUOf(pid)
		if err != nil {
			return nil, err
		}
		m, err := load.MemoryOf(pid)
		if err != nil {
			return nil, err
		}
		cores = max(cores, (used-before[i]).Seconds()/b.seconds.Seconds())
		rss, own = max(rss, float64(m.RSS)/1e6), max(own, float64(m.Anonymous)/1e6)
	}
	note := fmt.Sprintf("%.3f cores and %.0f MB, %.0f of it without mapped files, of the node that has most", cores, rss, own)
	if away != 0 {
		note += fmt.Sprintf("; %d leads are being handed over", away)
	}
	return []row{{what: "300 journals", note: note}}, errors.Join(b.profile(ctx, "idle"), b.dropAll(ctx, streams))
}

// writeOnce writes a record to each partition.
func writeOnce(ctx context.Context, b *bed, streams []string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer c.Close()
	var all []*kgo.Record
	for _, s := range streams {
		for p := range int32(failoverJournals) {
			all = append(all, &kgo.Record{Topic: s, Partition: p, Value: make([]byte, 100)})
		}
	}
	return c.ProduceSync(ctx, all...).FirstErr()
}

func (b *bed) dropAll(ctx context.Context, streams []string) (err error) {
	for _, s := range streams {
		err = errors.Join(err, b.drop(ctx, s))
	}
	return err
}

// rest does nothing for a while.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
