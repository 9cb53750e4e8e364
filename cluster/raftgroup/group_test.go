package raftgroup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

func openGroup(t testing.TB, o raftgroup.Options) *raftgroup.Group {
	t.Helper()
	g, err := raftgroup.Open(o)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// put appends one record and returns its offset.
func put(g *raftgroup.Group, partition uint32, value string) (int64, error) {
	b := &storage.Batch{Partition: partition, Data: storagetest.Batch(value)}
	if err := g.AppendWait(context.Background(), []*storage.Batch{b}); err != nil {
		return 0, err
	}
	return b.Offset, b.Err
}

// values reads all records of a partition.
func values(t testing.TB, j *storage.Journal, partition uint32) []string {
	t.Helper()
	var all []string
	start, end := j.Bounds(partition)
	for offset := start; offset < end; {
		c, err := j.Read(partition, offset, 1<<20, -1)
		if err != nil {
			t.Fatalf("reading at %d: %v", offset, err)
		}
		for _, p := range c.Pieces {
			for len(p) > 0 {
				h, err := storage.ParseHeader(p)
				if err != nil {
					t.Fatal(err)
				}
				if h.BaseOffset != start+int64(len(all)) {
					t.Fatalf("batch at offset %d, want %d: offsets are not dense", h.BaseOffset, start+int64(len(all)))
				}
				r := p[61:h.Size()]
				_, n := binary.Varint(r)
				length, m := binary.Varint(r[n+4:])
				all = append(all, string(r[n+4+m:][:length]))
				p = p[h.Size():]
			}
		}
		offset = c.Next
	}
	return all
}

func copyFiles(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	must(t, filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if info.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	}))
	return to
}

func TestAGroupOfOneServesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		began := time.Now()
		g := openGroup(t, raftgroup.Options{Dir: dir, Timeout: time.Minute})
		if took := time.Since(began); took > time.Minute { // some 30 ms, or raft's timeout
			t.Errorf("opening took %v", took)
		}
		if id, self := g.Leader(); id != "1" || !self {
			t.Errorf("leader is %q, self %v", id, self)
		}
		offset, err := put(g, 3, fmt.Sprint("value", round))
		if offset != int64(round) || err != nil {
			t.Fatalf("got offset %d, %v; want %d", offset, err, round)
		}
		if got := values(t, g.Journal(), 3); len(got) != round+1 {
			t.Fatalf("got %q", got)
		}
		must(t, g.Close())
		if _, err := put(g, 3, "late"); !errors.Is(err, raftgroup.ErrClosed) {
			t.Errorf("append after Close: got %v", err)
		}
	}
}

// A process that is killed and started again has everything it acknowledged, at the same offsets.
func TestAKilledGroupComesBackWithEverythingAcknowledged(t *testing.T) {
	t.Parallel()
	for _, mode := range []storage.Mode{storage.Durable, storage.Replicated} {
		dir := t.TempDir()
		o := raftgroup.Options{Dir: dir, Journal: storage.Options{Mode: mode, SegmentBytes: 32 << 10}}
		g := openGroup(t, o)
		want := map[string]int64{}
		var mu sync.Mutex
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for i := range 60 {
					v := fmt.Sprintf("%d-%d", w, i)
					offset, err := put(g, uint32(w%2), v)
					if err != nil {
						t.Errorf("%s: %v", v, err)
						return
					}
					mu.Lock()
					want[v] = offset
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		o.Dir = copyFiles(t, dir)
		again := openGroup(t, o)
		found := 0
		for p := range uint32(2) {
			for offset, v := range values(t, again.Journal(), p) {
				if want[v] != int64(offset) {
					t.Fatalf("%s is at offset %d, was acknowledged at %d", v, offset, want[v])
				}
				found++
			}
		}
		if found != len(want) {
			t.Errorf("mode %v: found %d records, %d were acknowledged", mode, found, len(want))
		}
	}
}

// In a group of one that acknowledges from memory, readers see only what is on stable storage.
func TestReplicatedAloneShowsOnlyWhatIsFlushed(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{Mode: storage.Replicated, FlushEvery: time.Hour, FS: fsys}})
	syncs := fsys.Count(vfs.OpSync)
	if _, err := put(g, 0, "a"); err != nil {
		t.Fatal(err)
	}
	if n := fsys.Count(vfs.OpSync) - syncs; n != 0 {
		t.Errorf("the append synced %d times", n)
	}
	if _, end := g.Journal().Bounds(0); end != 0 {
		t.Errorf("end is %d before the flush, want 0", end)
	}
	woken := make(chan struct{}, 1)
	defer g.Journal().Notify(woken, 0)()
	must(t, g.Journal().Flush())
	if _, end := g.Journal().Bounds(0); end != 1 {
		t.Errorf("end is %d after the flush, want 1", end)
	}
	select {
	case <-woken:
	default:
		t.Error("waiting readers were not told")
	}
}

// On a full disk appends are refused, nothing acknowledged is lost, reads go on, and appends resume by themselves.
func TestAFullDiskRefusesAppendsAndResumes(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	said := &lockedBuffer{}
	o := raftgroup.Options{
		Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 64 << 10, FS: fsys},
		Logger: slog.New(slog.NewTextHandler(said, nil)),
	}
	g := openGroup(t, o)
	var acked []string
	value := string(bytes.Repeat([]byte("v"), 1000))
	for round := range 3 {
		fsys.Limit(200 << 10)
		refused := 0
		for i := 0; refused < 5; i++ {
			if i > 5000 {
				t.Fatal("the disk never filled up")
			}
			v := fmt.Sprint(round, "-", i, value)
			switch offset, err := put(g, 0, v); {
			case err == nil:
				if offset != int64(len(acked)) {
					t.Fatalf("got offset %d, want %d", offset, len(acked))
				}
				acked = append(acked, v)
			case errors.Is(err, storage.ErrDiskFull) && errors.Is(err, syscall.ENOSPC):
				refused++
			default:
				t.Fatalf("got %v, want ErrDiskFull", err)
			}
		}
		if got := values(t, g.Journal(), 0); len(got) != len(acked) {
			t.Fatalf("read %d records on the full disk, want %d", len(got), len(acked))
		}
		if round == 1 { // a restart on the full disk must come up, too
			must(t, g.Close())
			g = openGroup(t, o)
			if _, err := put(g, 0, value); !errors.Is(err, storage.ErrDiskFull) {
				t.Fatalf("after a restart on the full disk: got %v, want ErrDiskFull", err)
			}
		}
		fsys.Heal()
	}
	if offset, err := put(g, 0, "resumed"); offset != int64(len(acked)) || err != nil {
		t.Fatalf("after space was freed: got offset %d, %v; want %d", offset, err, len(acked))
	}
	// Full in each of three rounds, and once more after the restart; not once for each append.
	if full, room := said.count("the disk is full"), said.count("there is room again"); full != 4 || room != 3 {
		t.Errorf("the log says %d times that the disk is full and %d times that it has room again, want 4 and 3", full, room)
	}
	must(t, g.Close())
	got := values(t, openGroup(t, o).Journal(), 0)
	for i, v := range acked {
		if got[i] != v {
			t.Fatalf("record %d is not the one that was acknowledged", i)
		}
	}
}

// Whatever write or sync fails, and however little of it was written: the group ends with the first error, no append is
// acknowledged after it, and a new start has all that was acknowledged before.
func TestAFailedWriteOrSyncEndsTheGroup(t *testing.T) {
	t.Parallel()
	for _, fault := range []vfs.Fault{
		{Op: vfs.OpSync, Name: ".seg"},
		{Op: vfs.OpWrite, Name: ".seg"},
		{Op: vfs.OpWrite, Name: ".seg", Short: 70},
		{Op: vfs.OpWrite, Name: "mark"},
		{Op: vfs.OpSyncDir},
		{Op: vfs.OpRename, Name: ".seg"},
	} {
		for _, nth := range []int{1, 2, 7} {
			fsys := vfs.NewFaulty(vfs.OS{})
			o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 4 << 10, FS: fsys}}
			g := openGroup(t, o)
			fault.Nth = nth
			fsys.Inject(fault)
			var acked []string
			var failed error
			for i := 0; failed == nil; i++ {
				if i > 1000 {
					t.Fatalf("%+v never hit", fault)
				}
				v := fmt.Sprint("value", i)
				if _, failed = put(g, 0, v); failed == nil {
					acked = append(acked, v)
				}
			}
			select {
			case <-g.Done():
			case <-time.After(10 * time.Second):
				t.Fatalf("%+v: the group goes on", fault)
			}
			if err := g.Err(); !errors.Is(err, syscall.EIO) {
				t.Errorf("%+v: group ended with %v, want the disk's error", fault, err)
			}
			fsys.Heal()
			if _, err := put(g, 0, "later"); !errors.Is(err, syscall.EIO) {
				t.Errorf("%+v: later append got %v, want the first error", fault, err)
			}
			_ = g.Close()
			got := values(t, openGroup(t, o).Journal(), 0)
			if len(got) < len(acked) || len(got) > len(acked)+1 {
				t.Fatalf("%+v: %d records after a new start, %d were acknowledged", fault, len(got), len(acked))
			}
			for i, v := range acked {
				if got[i] != v {
					t.Fatalf("%+v: record %d is %q, acknowledged was %q", fault, i, got[i], v)
				}
			}
		}
	}
}

func TestALargeBatchGetsAnEntryOfItsOwn(t *testing.T) {
	t.Parallel()
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 1 << 20}, QueueBytes: 1 << 20})
	large := storagetest.Batch(string(bytes.Repeat([]byte("x"), storage.MaxBatchBytes-100)))
	batches := []*storage.Batch{{Data: storagetest.Batch("a")}, {Data: large}, {Data: storagetest.Batch("b")}, {Data: large[:50]}, {Data: make([]byte, storage.MaxBatchBytes+1)}}
	must(t, g.AppendWait(context.Background(), batches))
	for i, b := range batches[:3] {
		if b.Err != nil || b.Offset != int64(i) {
			t.Errorf("batch %d: got offset %d, %v", i, b.Offset, b.Err)
		}
	}
	if !errors.Is(batches[3].Err, storage.ErrCorruptBatch) || !errors.Is(batches[4].Err, storage.ErrBatchTooLarge) {
		t.Errorf("broken batches: got %v and %v", batches[3].Err, batches[4].Err)
	}
	if got := values(t, g.Journal(), 0); len(got) != 3 || len(got[1]) != storage.MaxBatchBytes-100 {
		t.Errorf("got %d records", len(got))
	}
}

func TestAppendsFromManyKeepTheirOrder(t *testing.T) {
	t.Parallel()
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), QueueBytes: 4 << 10})
	var done sync.WaitGroup
	for w := range uint32(5) {
		done.Go(func() {
			var waiting sync.WaitGroup
			for i := range 200 {
				b := &storage.Batch{Partition: w, Data: storagetest.Batch(fmt.Sprint(i))}
				waiting.Add(1)
				err := g.Append(context.Background(), []*storage.Batch{b}, func(err error) {
					if err != nil || b.Err != nil || b.Offset != int64(i) {
						t.Errorf("writer %d, record %d: offset %d, %v, %v", w, i, b.Offset, err, b.Err)
					}
					waiting.Done()
				})
				if err != nil {
					t.Error(err)
					waiting.Done()
				}
			}
			waiting.Wait()
		})
	}
	done.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := g.Append(ctx, []*storage.Batch{{Data: storagetest.Batch("x")}}, func(error) {})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled append: %v", err)
	}
}

// A group that has little to store takes little disk.
func TestManyIdleGroupsAreCheap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 10 {
		g := openGroup(t, raftgroup.Options{Dir: filepath.Join(dir, fmt.Sprint(i))})
		if _, err := put(g, 0, "x"); err != nil {
			t.Fatal(err)
		}
	}
	var bytes int64
	must(t, filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	}))
	if bytes > 15<<20 {
		t.Errorf("ten journals of one record take %d bytes of disk", bytes)
	}
}

// idempotent is a batch of one record of a producer.
func idempotent(producer int64, sequence int32) []byte {
	b := storagetest.Batch("from a producer")
	be := binary.BigEndian
	be.PutUint64(b[43:], uint64(producer))
	be.PutUint16(b[51:], 0)
	be.PutUint32(b[53:], uint32(sequence))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}
