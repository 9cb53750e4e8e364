package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"github.com/daybook-data/daybook/internal/load"
)

// produceLoad sends prepared batches.
func produceLoad(l load.Options) func(context.Context, *bed) ([]row, error) {
	l.Raw = true
	return func(ctx context.Context, b *bed) ([]row, error) {
		r, err := b.produce(ctx, l)
		if err != nil {
			return nil, err
		}
		out := rowOf("", r, r.Produced)
		if l.Rate == 0 && l.InFlight != 1 {
			out.latency = nil // with the pipes full it tells how full they were
		}
		out.note = fmt.Sprintf("%.0f records per server CPU-s", float64(r.Produced.Records) / *r.ServerCPU)
		return []row{out}, nil
	}
}

// oneLoad sends one record a request, beside what a server that only answers takes for as many questions.
func oneLoad(l load.Options) func(context.Context, *bed) ([]row, error) {
	run := produceLoad(l)
	return func(ctx context.Context, b *bed) ([]row, error) {
		rows, err := run(ctx, b)
		if err != nil || b.name != "daybook" {
			return rows, err
		}
		bare, err := bareLoad{clients: l.Clients, size: 1150, rate: l.Rate}.measure(ctx, b.seconds/2)
		return append(rows, bare), err
	}
}

// produce runs a load into a stream that is gone afterwards.
func (b *bed) produce(ctx context.Context, l load.Options) (*load.Report, error) {
	l = b.options(l)
	if b.name == "nats" {
		return produceNATS(ctx, l)
	}
	r, err := load.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	return r, b.drop(ctx, l.Stream)
}

// drop deletes a stream: what all runs leave would fill the disk.
func (b *bed) drop(ctx context.Context, stream string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).DeleteTopic(ctx, stream)
	return err
}

// ackLoad measures answers at a fifth of what the system can do, beside what the bare disk takes for a sync.
func ackLoad(ctx context.Context, b *bed) ([]row, error) {
	l := load.Options{Raw: true, BatchBytes: 16 << 10, RequestBatches: 1, Clients: 4, InFlight: 5}
	full := l
	full.Duration = min(b.seconds, 3*time.Second)
	most, err := b.produce(ctx, full)
	if err != nil {
		return nil, err
	}
	disk, err := syncLatency(b.dir, b.seconds/2)
	if err != nil {
		return nil, err
	}
	l.Rate, l.InFlight = most.Produced.PerSecond/5, 100
	r, err := b.produce(ctx, l)
	if err != nil {
		return nil, err
	}
	out := rowOf("", r, r.Produced)
	bare, err := bareLoad{clients: l.Clients, size: l.BatchBytes, rate: l.Rate / float64(r.Batch)}.measure(ctx, b.seconds/2)
	return []row{out, bare, {what: "write and fdatasync of 64 KiB", latency: disk}}, err
}

// syncLatency writes 64 KiB at a time into a file that is there already, and syncs each.
func syncLatency(dir string, d time.Duration) (*load.Latency, error) {
	const piece, pieces = 64 << 10, 256
	path := filepath.Join(dir, "sync-probe")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	defer f.Close()
	buf := make([]byte, piece)
	for i := range int64(pieces) {
		if _, err := f.WriteAt(buf, i*piece); err != nil {
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	var h load.Histogram
	for i, end := int64(0), time.Now().Add(d); time.Now().Before(end); i++ {
		start := time.Now()
		if _, err := f.WriteAt(buf, i%pieces*piece); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		h.Add(time.Since(start), 1)
	}
	return h.Latency(), nil
}
