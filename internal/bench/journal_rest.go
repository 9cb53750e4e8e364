package main

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/internal/load"
)

// idleLoad makes a thousand partitions, writes to each once, and then watches the server do nothing.
func idleLoad(ctx context.Context, b *bed) ([]row, error) {
	const partitions = 1000
	l := b.options(load.Options{Raw: true, Partitions: partitions, Records: partitions, BatchRecords: 1, RequestBatches: 50, Size: 100})
	if _, err := load.Run(ctx, l); err != nil {
		return nil, err
	}
	select {
	case <-time.After(2 * time.Second): // what is written later is written
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	before, err := load.CPUOf(b.pids...)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(b.seconds):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := load.CPUOf(b.pids...)
	if err != nil {
		return nil, err
	}
	memory, err := load.MemoryOf(b.pids[0])
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("%.3f cores, %.0f MB", (after-before).Seconds()/b.seconds.Seconds(), float64(memory.RSS)/1e6)
	return []row{{what: fmt.Sprintf("%d partitions", partitions), note: note}}, b.drop(ctx, l.Stream)
}

// restartLoad fills a stream, kills the server with -9 while it is written to, and waits until it takes records again.
func restartLoad(ctx context.Context, b *bed) ([]row, error) {
	kept := b.o.keepGB
	if b.seconds < b.o.seconds { // only warming up
		kept = 0.1
	}
	ratio := 4.25
	stream := b.stream()
	if _, err := load.Run(ctx, b.options(load.Options{Raw: true, Stream: stream, Records: int64(kept * 1e9 * ratio / 1024)})); err != nil {
		return nil, err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := load.Run(writing, b.options(load.Options{Raw: true, Stream: stream, Duration: time.Minute}))
		ended <- err
	}()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	if err := b.kill(); err != nil {
		return nil, err
	}
	cancel()
	if err := <-ended; err == nil {
		return nil, fmt.Errorf("a load went on without its server")
	}
	start := time.Now()
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	answers := time.Since(start)
	one := b.options(load.Options{Raw: true, Stream: stream, Records: 8, BatchRecords: 1})
	if _, err := load.Run(ctx, one); err != nil {
		return nil, err
	}
	took := time.Since(start)
	note := fmt.Sprintf("answers after %.2f s, has stored records after %.2f s", answers.Seconds(), took.Seconds())
	return []row{{what: fmt.Sprintf("%.1f GB kept", kept), note: note}}, b.drop(ctx, stream)
}
