package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/daybook-data/daybook/internal/load"
)

// tailLoad writes at a rate, without and with somebody who reads at the tail. The difference is what reading costs.
func tailLoad(ctx context.Context, b *bed) ([]row, error) {
	l := load.Options{Raw: true, Rate: 250_000, InFlight: 50}
	without, err := b.produce(ctx, l)
	if err != nil {
		return nil, err
	}
	l.Mode = load.Both
	with, err := b.produce(ctx, l)
	if err != nil {
		return nil, err
	}
	write, both := rowOf("write alone", without, without.Produced), rowOf("write and read", with, with.Produced)
	read := row{what: "read, the difference", records: with.Consumed.PerSecond, mb: with.Consumed.MB, server: both.server - write.server}
	read.note = fmt.Sprintf("writes lose %.1f %%", 100*(1-with.Produced.PerSecond/without.Produced.PerSecond))
	return []row{read, write, both}, nil
}

// replayLoad reads history that is not in memory while writers and four readers are at the tail.
func replayLoad(ctx context.Context, b *bed) ([]row, error) {
	history := b.stream()
	gb := b.o.replayGB
	if b.seconds < b.o.seconds { // only warming up
		gb = min(gb, 0.2)
	}
	fill := b.options(load.Options{Raw: true, Stream: history, Records: int64(gb * 1e9 * 4.25 / 1024), InFlight: 2})
	filled, err := load.Run(ctx, fill)
	if err != nil {
		return nil, err
	}
	disk, err := readCold(ctx, b.dir)
	if err != nil {
		return nil, err
	}
	live := load.Options{Mode: load.Both, Rate: 20_000, Clients: 4, Partitions: 4, Linger: -1}
	quiet, err := b.produce(ctx, live)
	if err != nil {
		return nil, err
	}
	if err := evict(b.dir); err != nil {
		return nil, err
	}
	var replayed, busy *load.Report
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		busy, err = b.produce(both, live)
		return err
	})
	group.Go(func() (err error) {
		<-time.After(b.seconds / 5) // the live readers are there first
		replayed, err = load.Run(both, b.options(load.Options{Raw: true, Mode: load.Consume, Stream: history, Clients: 1, Records: filled.Produced.Records}))
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := b.drop(ctx, history); err != nil {
		return nil, err
	}
	replay := rowOf("replay", replayed, replayed.Consumed)
	replay.client, replay.server = 0, 0 // shared with the live load
	replay.note = fmt.Sprintf("bare disk %.0f MB/s: %.0f %%", disk, 100*replayed.Consumed.MB/disk)
	alone, beside := rowOf("live, alone", quiet, quiet.Consumed), rowOf("live, beside the replay", busy, busy.Consumed)
	beside.note = fmt.Sprintf("p99 %.2f times", busy.Consumed.Latency.P99/quiet.Consumed.Latency.P99)
	return []row{replay, alone, beside}, nil
}

// evict takes all files below dir out of the page cache.
func evict(dir string) error {
	syscall.Sync() // dirty pages stay
	return eachFile(dir, func(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) })
}

// readCold reads all large files below dir in order and returns MB/s of the bare disk.
func readCold(ctx context.Context, dir string) (float64, error) {
	if err := evict(dir); err != nil {
		return 0, err
	}
	var n int64
	start := time.Now()
	buf := make([]byte, 1<<20)
	err := eachFile(dir, func(f *os.File) error {
		for ctx.Err() == nil {
			m, err := f.Read(buf)
			n += int64(m)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return float64(n) / 1e6 / time.Since(start).Seconds(), err
}

// eachFile opens every file below dir of at least a mebibyte.
func eachFile(dir string, f func(*os.File) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		if info, err := d.Info(); err != nil || info.Size() < 1<<20 {
			return ignoreGone(err)
		}
		file, err := os.Open(path)
		if err != nil {
			return ignoreGone(err)
		}
		defer file.Close()
		return f(file)
	})
}

// ignoreGone drops the error of a file that the server has removed meanwhile.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
