package storage_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// benchBatch is one batch of about n bytes.
func benchBatch(n int) []byte {
	return batch(batchSpec{values: []string{string(bytes.Repeat([]byte("x"), n))}})
}

// appendEntries stores b.N batches of a size in entries of about 1 MiB, over 200 partitions.
func benchmarkAppend(b *testing.B, mode storage.Mode, size int) {
	l := openLog(b, b.TempDir(), storage.Options{Mode: mode, Retention: storage.Retention{Bytes: 256 << 20}})
	data := benchBatch(size)
	perEntry := max(1, 1<<20/size)
	batches := make([]*storage.Batch, perEntry)
	for i := range batches {
		batches[i] = &storage.Batch{Partition: uint32(i % 200), Data: bytes.Clone(data)}
		must(b, batches[i].Check())
	}
	p := &storage.Proposal{}
	index := l.last()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		p.Batches = batches[:min(perEntry, b.N-done)]
		done += len(p.Batches)
		entry, err := l.Propose(p)
		must(b, err)
		index++
		must(b, l.StoreLog(&raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: entry}))
		l.Withdraw(p)
		l.Commit(index)
		if index%64 == 0 {
			_, err := l.Retain()
			must(b, err)
		}
	}
}

func BenchmarkAppendDurable3K(b *testing.B)     { benchmarkAppend(b, storage.Durable, 2700) }
func BenchmarkAppendDurable28K(b *testing.B)    { benchmarkAppend(b, storage.Durable, 28500) }
func BenchmarkAppendReplicated3K(b *testing.B)  { benchmarkAppend(b, storage.Replicated, 2700) }
func BenchmarkAppendReplicated28K(b *testing.B) { benchmarkAppend(b, storage.Replicated, 28500) }

// benchmarkAck appends one entry after the other to a new journal and reports how long each took.
func benchmarkAck(b *testing.B, size int) {
	l := openLog(b, b.TempDir(), storage.Options{})
	batch := &storage.Batch{Data: benchBatch(size)}
	took := make([]time.Duration, 0, b.N)
	b.SetBytes(int64(len(batch.Data)))
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		must(b, l.store(batch))
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkAck4K(b *testing.B)  { benchmarkAck(b, 4<<10) }
func BenchmarkAck64K(b *testing.B) { benchmarkAck(b, 64<<10) }
func BenchmarkAck1M(b *testing.B)  { benchmarkAck(b, 1<<20) }

// benchmarkRead reads a partition in fetches of 1 MiB; parts of them lie interleaved.
func benchmarkRead(b *testing.B, size, parts int) {
	l := openLog(b, b.TempDir(), storage.Options{Mode: storage.Replicated})
	data := benchBatch(size)
	for n := 0; n < 128<<20; n += len(data) * parts {
		batches := make([]*storage.Batch, parts)
		for i := range batches {
			batches[i] = &storage.Batch{Partition: uint32(i), Data: bytes.Clone(data)}
		}
		must(b, l.store(batches...))
	}
	l.Commit(l.last())
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	b.ResetTimer()
	offset := int64(0)
	for range b.N {
		c, err := l.Read(0, offset, 1<<20, -1)
		must(b, err)
		if offset = c.Next; c.Bytes == 0 {
			offset = 0
		}
		c.Release()
	}
}

func BenchmarkReadContiguous3K(b *testing.B)  { benchmarkRead(b, 2700, 1) }
func BenchmarkReadInterleaved3K(b *testing.B) { benchmarkRead(b, 2700, 10) }

// BenchmarkOpen opens a journal of 128 MiB in sealed segments and one open one.
func BenchmarkOpen(b *testing.B) {
	l := openLog(b, b.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: 16 << 20})
	data := benchBatch(2700)
	for i := range 48 << 10 {
		must(b, l.store(&storage.Batch{Partition: uint32(i % 50), Data: bytes.Clone(data)}))
	}
	must(b, l.Close())
	b.ResetTimer()
	for range b.N {
		j, err := storage.Open(l.dir, l.opts)
		if err != nil {
			b.Fatal(fmt.Errorf("opening: %w", err))
		}
		must(b, j.Close())
	}
}
