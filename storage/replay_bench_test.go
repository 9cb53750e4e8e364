//go:build linux

package storage_test

import (
	"bytes"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

const (
	replayBytes      = 2 << 30
	replayPartitions = 8
	liveReaders      = 4
)

// BenchmarkColdReplay reads 2 GiB of old data that is not in memory while four readers follow the tail of a writer, and
// compares: the disk read raw, and the live readers' p99 without the replay, in the same run.
//
//	go test ./storage -run '^$' -bench ColdReplay -benchtime 3x
func BenchmarkColdReplay(b *testing.B) {
	l := openLog(b, b.TempDir(), storage.Options{Mode: storage.Replicated})
	data := randomBatch(250 << 10)
	for n := 0; n < replayBytes; n += replayPartitions * len(data) {
		batches := make([]*storage.Batch, replayPartitions)
		for p := range batches {
			batches[p] = &storage.Batch{Partition: uint32(p), Data: bytes.Clone(data)}
		}
		must(b, l.store(batches...))
	}
	l.Commit(l.last())
	must(b, l.Flush())
	var ends [replayPartitions]int64
	for p := range ends {
		_, ends[p] = l.Bounds(uint32(p))
	}
	for range b.N {
		dropPages(b, l.dir)
		raw := rawRead(b, l.dir)
		alone := l.live(b, func() { time.Sleep(3 * time.Second) })
		dropPages(b, l.dir)
		var took time.Duration
		var read int64
		beside := l.live(b, func() {
			start := time.Now()
			read = l.replay(b, ends)
			took = time.Since(start)
		})
		rate := float64(read) / 1e6 / took.Seconds()
		b.Logf("raw %.0f MB/s; replay %.0f MB/s (%.0f %%); live p99 %v alone, %v beside it (%.2fx)",
			raw, rate, 100*rate/raw, p99(alone), p99(beside), float64(p99(beside))/float64(p99(alone)))
	}
}

func randomBatch(n int) []byte {
	value := make([]byte, n)
	rand.New(rand.NewSource(1)).Read(value)
	return batch(batchSpec{values: []string{string(value)}})
}

// rawRead reads the sealed segments one after the other in pieces of a MiB, as fast as the disk gives them.
func rawRead(b *testing.B, dir string) float64 {
	buf := make([]byte, 1<<20)
	var total int64
	start := time.Now()
	all := files(b, dir, ".seg")
	for _, name := range all[:len(all)-1] {
		f, err := os.Open(filepath.Join(dir, name))
		must(b, err)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		must(b, err)
		must(b, f.Close())
		total += n
	}
	return float64(total) / 1e6 / time.Since(start).Seconds()
}

// replay reads all partitions from the start, in turns of a MiB.
func (l *log) replay(b *testing.B, ends [replayPartitions]int64) (read int64) {
	var at [replayPartitions]int64
	for at != ends {
		for p := range at {
			if at[p] == ends[p] {
				continue
			}
			c, err := l.Read(uint32(p), at[p], 1<<20, ends[p])
			must(b, err)
			at[p] = c.Next
			read += int64(c.Bytes)
			c.Release()
		}
	}
	return read
}

// live appends 64 KiB every 2 ms to partition 100 while f runs, and returns how long after its append each of the live
// readers had it.
func (l *log) live(b *testing.B, f func()) []time.Duration {
	data := randomBatch(64 << 10)
	var stop atomic.Bool
	var mu sync.Mutex
	sent := map[int64]time.Time{}
	var all []time.Duration
	var wg sync.WaitGroup
	_, start := l.Bounds(100)
	ready := make(chan struct{}, liveReaders)
	for range liveReaders {
		wg.Go(func() {
			ch := make(chan struct{}, 1)
			defer l.Notify(ch, 100)()
			ready <- struct{}{}
			for offset := start; !stop.Load(); {
				c, err := l.Read(100, offset, 1<<20, -1)
				must(b, err)
				now := time.Now()
				mu.Lock()
				for ; offset < c.Next; offset++ {
					all = append(all, now.Sub(sent[offset]))
				}
				mu.Unlock()
				if c.Bytes == 0 {
					select {
					case <-ch:
					case <-time.After(50 * time.Millisecond):
					}
				}
				c.Release()
			}
		})
	}
	for range liveReaders {
		<-ready
	}
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for offset := start; !stop.Load(); offset++ {
			<-tick.C
			x := &storage.Batch{Partition: 100, Data: bytes.Clone(data)}
			must(b, x.Check())
			p := &storage.Proposal{Batches: []*storage.Batch{x}}
			entry, err := l.Propose(p)
			must(b, err)
			mu.Lock()
			sent[offset] = time.Now()
			mu.Unlock()
			must(b, l.StoreLog(&raft.Log{Index: l.last() + 1, Term: 1, Type: raft.LogCommand, Data: entry}))
			l.Withdraw(p)
			l.Commit(l.last())
		}
	})
	f()
	stop.Store(true)
	wg.Wait()
	return all
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100].Round(time.Microsecond)
}
