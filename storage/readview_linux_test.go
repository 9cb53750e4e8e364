package storage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daybook-data/daybook/storage"
)

// fill puts n batches of about size bytes into each of the partitions, one entry a round, and returns what each holds.
func fill(t testing.TB, l *log, partitions, n, size int) [][]byte {
	t.Helper()
	want := make([][]byte, partitions)
	for i := range n {
		batches := make([]*storage.Batch, partitions)
		for p := range batches {
			value := bytes.Repeat([]byte{byte(i), byte(p), byte(i >> 8)}, size/3)
			batches[p] = &storage.Batch{Partition: uint32(p), Data: batch(batchSpec{values: []string{string(value)}})}
		}
		must(t, l.store(batches...))
		for p, b := range batches {
			want[p] = append(want[p], b.Data...)
		}
	}
	l.Commit(l.last())
	return want
}

// dropPages makes the kernel forget the journal's files.
func dropPages(t testing.TB, dir string) {
	t.Helper()
	for _, name := range files(t, dir, ".seg") {
		f, err := os.Open(filepath.Join(dir, name))
		must(t, err)
		must(t, unix.Fdatasync(int(f.Fd())))
		must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		must(t, f.Close())
	}
}

// A file that was cut short under a running journal is an error to its readers, not the end of the process.
func TestATruncatedSegmentIsAnErrorToItsReaders(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 1 << 20})
	fill(t, l, 1, 40, 100_000)
	first := filepath.Join(l.dir, files(t, l.dir, ".seg")[0])
	must(t, os.Truncate(first, 300_000))
	c, err := l.Read(0, 0, 200_000, -1)
	must(t, err)
	if c.Bytes == 0 {
		t.Error("the batches before the cut are not read")
	}
	c.Release()
	if c, err := l.Read(0, 5, 100_000, -1); err == nil {
		t.Errorf("read %d bytes that the file has no more", c.Bytes)
	}
}

// A byte that flips on the disk is found by the next read, whatever was in memory before.
func TestAFlippedByteIsFoundByTheNextRead(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 1 << 20})
	fill(t, l, 1, 40, 100_000)
	c, err := l.Read(0, 0, 50_000, -1)
	must(t, err)
	c.Release()
	f, err := os.OpenFile(filepath.Join(l.dir, files(t, l.dir, ".seg")[0]), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, 5000)
	must(t, err)
	must(t, f.Close())
	if _, err := l.Read(0, 0, 50_000, -1); !isDamage(err) {
		t.Errorf("reading a flipped byte: %v, want damage", err)
	}
}

// What readers of old data bring into memory stays within the budget, whatever they read.
func TestReadersOfOldDataKeepToTheBudget(t *testing.T) {
	t.Parallel()
	cache := storage.NewCache(8 << 20)
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: 4 << 20, Cache: cache})
	want := fill(t, l, 20, 400, 5000)
	must(t, l.Flush())
	for round := range 2 {
		dropPages(t, l.dir)
		for p := range want {
			var got []byte
			for offset := int64(0); ; {
				c, err := l.Read(uint32(p), offset, 200_000, -1)
				must(t, err)
				if c.Bytes == 0 {
					break
				}
				got = append(got, bytes.Join(c.Pieces, nil)...)
				offset = c.Next
				c.Release()
				if s := cache.Stats(); s.Bytes > s.Budget+2<<20 {
					t.Fatalf("%d bytes are charged to a budget of %d", s.Bytes, s.Budget)
				}
			}
			if !bytes.Equal(got, want[p]) {
				t.Fatalf("round %d: partition %d reads %d bytes that are not the %d written", round, p, len(got), len(want[p]))
			}
		}
	}
	if s := cache.Stats(); s.Misses == 0 || s.Hits == 0 {
		t.Errorf("reading cold and interleaved data again and again counts %+v", s)
	}
}

// Partitions that lie between one another are brought into memory once for all who read them at about the same time.
func TestReadersThatLagTogetherShareOneScan(t *testing.T) {
	t.Parallel()
	cache := storage.NewCache(256 << 20)
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: 16 << 20, Cache: cache})
	const partitions = 50
	want := fill(t, l, partitions, 200, 3000)
	must(t, l.Flush())
	dropPages(t, l.dir)
	for p := range partitions {
		c, err := l.Read(uint32(p), 0, 1<<20, -1)
		must(t, err)
		if c.Bytes != len(want[p]) {
			t.Fatalf("partition %d: %d bytes, want %d", p, c.Bytes, len(want[p]))
		}
		c.Release()
	}
	if s := cache.Stats(); s.Misses > s.Hits {
		t.Errorf("of %d partitions that were read one after the other, %d bytes came from disk and %d from memory", partitions, s.Misses, s.Hits)
	}
}

// A chunk keeps its bytes while retention removes the segment and writes over its file.
func TestAChunkOutlivesItsSegment(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 256 << 10, Retention: storage.Retention{Bytes: 512 << 10}})
	want := fill(t, l, 1, 2, 50_000)
	c, err := l.Read(0, 0, 1<<20, -1)
	must(t, err)
	for range 10 {
		fill(t, l, 1, 10, 50_000)
		_, err := l.Retain()
		must(t, err)
	}
	if start, _ := l.Bounds(0); start == 0 {
		t.Fatal("nothing was removed")
	}
	if got := bytes.Join(c.Pieces, nil); !bytes.Equal(got, want[0]) {
		t.Error("the bytes of a chunk in hand changed")
	}
	must(t, l.Close())
	c.Release()
}
