package raftgroup_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// produce appends b.N batches from 64 producers that each wait for atOnce batches at a time, over 200 partitions.
func produce(b *testing.B, g *raftgroup.Group, size, atOnce int) {
	const producers = 64
	data := storagetest.Batch(string(bytes.Repeat([]byte("x"), size)))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for p := range producers {
		running.Go(func() {
			buffers := make([][]byte, atOnce)
			for i := range buffers {
				buffers[i] = bytes.Clone(data)
			}
			for n := p; n < b.N; {
				batches := make([]*storage.Batch, 0, atOnce)
				for ; n < b.N && len(batches) < atOnce; n += producers {
					batches = append(batches, &storage.Batch{Partition: uint32(n % 200), Data: buffers[len(batches)]})
				}
				if err := g.AppendWait(context.Background(), batches); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.StopTimer()
}

func benchmarkGroup(b *testing.B, mode storage.Mode, size int) {
	g := openGroup(b, raftgroup.Options{Dir: b.TempDir(), Journal: storage.Options{Mode: mode, Retention: storage.Retention{Bytes: 256 << 20}}})
	produce(b, g, size, 32)
	if _, err := g.Retain(); err != nil {
		b.Error(err)
	}
}

func BenchmarkAppendDurable3K(b *testing.B)     { benchmarkGroup(b, storage.Durable, 2700) }
func BenchmarkAppendDurable28K(b *testing.B)    { benchmarkGroup(b, storage.Durable, 28500) }
func BenchmarkAppendReplicated3K(b *testing.B)  { benchmarkGroup(b, storage.Replicated, 2700) }
func BenchmarkAppendReplicated28K(b *testing.B) { benchmarkGroup(b, storage.Replicated, 28500) }
