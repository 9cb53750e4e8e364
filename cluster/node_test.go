package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// openNode opens a node in dir; it is closed at the end of the test.
func openNode(t *testing.T, dir string, change ...func(*cluster.Options)) *cluster.Node {
	t.Helper()
	o := cluster.Options{Dir: dir, SegmentBytes: 64 << 10}
	for _, f := range change {
		f(&o)
	}
	n, err := cluster.Open(o)
	if err != nil {
		t.Fatalf("opening the node: %v", err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func create(t *testing.T, n *cluster.Node, new metadata.NewStream) *metadata.Stream {
	t.Helper()
	s, err := n.CreateStream(t.Context(), new)
	if err != nil {
		t.Fatalf("creating %s: %v", new.Name, err)
	}
	return s
}

// appendTo appends a record and returns the result.
func appendTo(t *testing.T, n *cluster.Node, stream string, partition int32, value string) cluster.Appended {
	t.Helper()
	p, err := n.Partition(stream, partition)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan cluster.Appended, 1)
	if err := p.Append(t.Context(), storagetest.Batch(value), func(a cluster.Appended) { done <- a }); err != nil {
		return cluster.Appended{Err: err}
	}
	return <-done
}

func mustAppend(t *testing.T, n *cluster.Node, stream string, partition int32, value string) int64 {
	t.Helper()
	a := appendTo(t, n, stream, partition, value)
	if a.Err != nil {
		t.Fatalf("appending to %s: %v", stream, a.Err)
	}
	return a.BaseOffset
}

func bounds(t *testing.T, n *cluster.Node, stream string) cluster.Bounds {
	t.Helper()
	p, err := n.Partition(stream, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Bounds()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

func TestStreamsAreWhatTheyWereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, dir)
	want := create(t, n, metadata.NewStream{Name: "orders", Partitions: 3, Journals: 2, Config: map[string]string{"retention.ms": "-1"}})
	for i := range 6 {
		mustAppend(t, n, "orders", int32(i%3), fmt.Sprint(i))
	}
	if err := n.GrowStream(t.Context(), want.ID, 5); err != nil {
		t.Fatal(err)
	}
	id := n.ClusterID()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir)
	got, ok := n.Meta().Stream("orders")
	if !ok || got.ID != want.ID || got.Partitions != 5 || got.Journals != 2 || got.Value("retention.ms") != "-1" {
		t.Errorf("the stream came back as %+v", got)
	}
	if n.ClusterID() != id || id == "" {
		t.Errorf("cluster id was %q, is %q", id, n.ClusterID())
	}
	if offset := mustAppend(t, n, "orders", 2, "next"); offset != 2 {
		t.Errorf("the next record of partition 2 got offset %d, want 2", offset)
	}
	if offset := mustAppend(t, n, "orders", 4, "first"); offset != 0 {
		t.Errorf("the first record of partition 4 got offset %d, want 0", offset)
	}
	if _, err := n.Partition("orders", 5); !errors.Is(err, metadata.ErrUnknownPartition) {
		t.Errorf("partition 5 of 5: %v, want ErrUnknownPartition", err)
	}
}

// A stream of the same name is another stream.
func TestStreamCreatedAgainIsANewOne(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	old := create(t, n, metadata.NewStream{Name: "s"})
	mustAppend(t, n, "s", 0, "old")
	offset := []metadata.GroupOffset{{Stream: old.ID, Offset: 1}}
	if err := n.CommitOffsets(t.Context(), "g", offset); err != nil {
		t.Fatal(err)
	}
	kept, err := n.Partition("s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.DeleteStream(t.Context(), old.ID); err != nil {
		t.Fatal(err)
	}
	fresh := create(t, n, metadata.NewStream{Name: "s"})
	if fresh.ID == old.ID {
		t.Fatal("the new stream has the old one's id")
	}
	if got := mustAppend(t, n, "s", 0, "new"); got != 0 {
		t.Errorf("its first record got offset %d, want 0", got)
	}
	if _, ok, _ := n.Meta().GroupOffset("g", metadata.StreamPartition{Stream: fresh.ID}); ok {
		t.Error("it inherited a committed offset")
	}
	eventually(t, "ending appends to the old one", func() error {
		done := make(chan cluster.Appended, 1)
		if err := kept.Append(t.Context(), storagetest.Batch("late"), func(a cluster.Appended) { done <- a }); err != nil {
			return nil
		}
		if a := <-done; a.Err != nil {
			return nil
		}
		return errors.New("a handle of the deleted stream still appends")
	})
}

func TestFilesOfADeletedStreamGoEvenIfTheNodeStopsInBetween(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	faulty := vfs.NewFaulty(vfs.OS{})
	n := openNode(t, dir, func(o *cluster.Options) { o.FS = faulty })
	s := create(t, n, metadata.NewStream{Name: "s"})
	other := create(t, n, metadata.NewStream{Name: "other"})
	mustAppend(t, n, "s", 0, "v")
	mustAppend(t, n, "other", 0, "v")
	faulty.Inject(vfs.Fault{Op: vfs.OpRemove, Name: s.ID.String(), Keep: true})
	if err := n.DeleteStream(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(dir, "streams", s.ID.String())
	if _, err := os.Stat(files); err != nil {
		t.Fatalf("the files are gone already: %v", err)
	}
	n = openNode(t, dir)
	eventually(t, "removing the files", func() error {
		if _, err := os.Stat(files); err == nil {
			return errors.New("they are still there")
		}
		return nil
	})
	if len(n.Strays()) > 0 {
		t.Errorf("strays: %v", n.Strays())
	}
	if got := mustAppend(t, n, "other", 0, "w"); got != 1 {
		t.Errorf("the other stream goes on at %d, want 1", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "streams", other.ID.String())); err != nil {
		t.Error(err)
	}
}

// What the metadata does not know is never deleted.
func TestDataThatTheMetadataDoesNotKnowIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, dir)
	s := create(t, n, metadata.NewStream{Name: "s"})
	mustAppend(t, n, "s", 0, "precious")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	meta, aside := filepath.Join(dir, "meta"), filepath.Join(dir, "meta.aside")
	if err := os.Rename(meta, aside); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.Open(cluster.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "metadata") {
		t.Fatalf("a directory without its metadata was opened: %v", err)
	}
	if err := os.RemoveAll(meta); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, meta); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(dir, "streams", "00000000-0000-4000-8000-000000000000", "0")
	if err := os.MkdirAll(stray, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stray, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir)
	if b := bounds(t, n, "s"); b.HighWatermark != 1 {
		t.Errorf("stream %s ends at %d, want 1", s.Name, b.HighWatermark)
	}
	if len(n.Strays()) != 1 {
		t.Errorf("strays are %v, want the one", n.Strays())
	}
	if _, err := os.Stat(filepath.Join(stray, "file")); err != nil {
		t.Errorf("the stray was touched: %v", err)
	}
}

func TestSecondOpenerIsToldWhoHasTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openNode(t, dir)
	_, err := cluster.Open(cluster.Options{Dir: dir})
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("got %v, want a *vfs.LockedError", err)
	}
}

func TestHoldingGroupKeepsWhatItHasNotPassed(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir(), func(o *cluster.Options) { o.RetainEvery = 10 * time.Millisecond })
	keep := map[string]string{"retention.bytes": "1"}
	for _, name := range []string{"held", "free"} {
		s := create(t, n, metadata.NewStream{Name: name, Config: keep})
		group := metadata.HoldingGroupPrefix + "sink"
		if name == "free" {
			group = "somebody"
		}
		if err := n.CommitOffsets(t.Context(), group, []metadata.GroupOffset{{Stream: s.ID, Offset: 2}}); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			mustAppend(t, n, name, 0, strings.Repeat(fmt.Sprint(i%10), 10<<10))
		}
	}
	eventually(t, "retention", func() error {
		if b := bounds(t, n, "free"); b.Start < 20 {
			return fmt.Errorf("the free stream starts at %d", b.Start)
		}
		return nil
	})
	if b := bounds(t, n, "held"); b.Start > 2 {
		t.Errorf("the held stream starts at %d, the group has passed only 2", b.Start)
	}
	if err := n.DeleteGroup(t.Context(), 0, metadata.HoldingGroupPrefix+"sink"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "retention after the group is gone", func() error {
		if b := bounds(t, n, "held"); b.Start < 20 {
			return fmt.Errorf("the held stream starts at %d", b.Start)
		}
		return nil
	})
}

func TestGroupThatHoldsRetentionForLongIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log strings.Builder
	n := openNode(t, t.TempDir(), func(o *cluster.Options) {
		o.RetainEvery, o.IdleHold = 5*time.Millisecond, time.Millisecond
		o.Logger = slog.New(slog.NewTextHandler(writer(func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			log.Write(p)
		}), nil))
	})
	logged := func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
	// hold makes a stream of one record that a group has passed, or has not.
	hold := func(stream string, offset int64) {
		t.Helper()
		s := create(t, n, metadata.NewStream{Name: stream})
		mustAppend(t, n, stream, 0, "v")
		err := n.CommitOffsets(t.Context(), metadata.HoldingGroupPrefix+"of."+stream, []metadata.GroupOffset{{Stream: s.ID, Offset: offset}})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := func(stream string) int { return strings.Count(logged(), "group=daybook.of."+stream) }
	hold("read", 1)
	for _, stream := range []string{"held", "second", "third"} { // each is seen in a later round
		hold(stream, 0)
		eventually(t, "being told of "+stream, func() error {
			if told(stream) == 0 {
				return errors.New("nothing logged")
			}
			return nil
		})
	}
	if told("held") != 1 || told("read") != 0 {
		t.Errorf("the group that holds was logged %d times, the one that does not %d times; want 1 and 0", told("held"), told("read"))
	}
}

// writer is a log's destination.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestFullDiskRefusesAndRecoversWithoutARestart(t *testing.T) {
	t.Parallel()
	faulty := vfs.NewFaulty(vfs.OS{})
	n := openNode(t, t.TempDir(), func(o *cluster.Options) { o.FS = faulty })
	create(t, n, metadata.NewStream{Name: "s"})
	mustAppend(t, n, "s", 0, "before")
	faulty.Limit(0)
	stored := 1
	eventually(t, "filling the disk", func() error {
		a := appendTo(t, n, "s", 0, strings.Repeat("x", 8<<10))
		if errors.Is(a.Err, storage.ErrDiskFull) {
			return nil
		}
		if a.Err != nil {
			t.Fatalf("got %v, want ErrDiskFull", a.Err)
		}
		stored++
		return errors.New("still room")
	})
	if b := bounds(t, n, "s"); b.HighWatermark != int64(stored) {
		t.Errorf("readers see %d records, want %d", b.HighWatermark, stored)
	}
	faulty.Heal()
	eventually(t, "an append after the disk was mended", func() error { // the disk may have been measured while it was full
		a := appendTo(t, n, "s", 0, "after")
		if a.Err == nil && a.BaseOffset != int64(stored) {
			t.Errorf("the next record got offset %d, want %d", a.BaseOffset, stored)
		}
		return a.Err
	})
}

func TestFailedDiskMakesTheJournalReadOnlyAndNotTheOthers(t *testing.T) {
	t.Parallel()
	faulty := vfs.NewFaulty(vfs.OS{})
	log := &told{}
	n := openNode(t, t.TempDir(), func(o *cluster.Options) { o.FS, o.Logger = faulty, slog.New(slog.NewTextHandler(log, nil)) })
	sick := create(t, n, metadata.NewStream{Name: "sick"})
	create(t, n, metadata.NewStream{Name: "well"})
	mustAppend(t, n, "sick", 0, "v")
	faulty.Inject(vfs.Fault{Op: vfs.OpSync, Name: sick.ID.String(), Keep: true})
	if a := appendTo(t, n, "sick", 0, "w"); !errors.Is(a.Err, cluster.ErrReadOnly) {
		t.Errorf("the append gave %v, want ErrReadOnly", a.Err)
	}
	if err := n.Health(); !errors.Is(err, cluster.ErrReadOnly) || !strings.Contains(err.Error(), "journal 0 of sick") || n.Disk().ReadOnly != 1 {
		t.Errorf("health is %v", err)
	}
	eventually(t, "logging it", func() error {
		if n := log.count("become read-only"); n != 1 {
			return fmt.Errorf("it was logged %d times", n)
		}
		return nil
	})
	faulty.Heal()
	if a := appendTo(t, n, "sick", 0, "w"); !errors.Is(a.Err, cluster.ErrReadOnly) {
		t.Errorf("the next append gave %v, want ErrReadOnly", a.Err)
	}
	mustAppend(t, n, "well", 0, "v")
	p, err := n.Partition("sick", 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Read(cluster.ReadRequest{MaxBytes: 1 << 20})
	if err != nil || f.Bytes == 0 {
		t.Errorf("reading gave %d bytes, %v; want what was stored before", f.Bytes, err)
	}
}

func TestManyStreamsDoNotDelayTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, dir)
	for i := range 200 {
		create(t, n, metadata.NewStream{Name: fmt.Sprint("s", i)})
		mustAppend(t, n, fmt.Sprint("s", i), 0, "v")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	n = openNode(t, dir)
	if took := time.Since(start); took > time.Minute { // half a second, or 200 elections one after the other
		t.Errorf("opening took %v", took)
	}
	if got := mustAppend(t, n, "s199", 0, "w"); got != 1 {
		t.Errorf("the last stream goes on at %d, want 1", got)
	}
}

func TestImpossibleStreamsAreRefused(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	create(t, n, metadata.NewStream{Name: "a.b"})
	for _, c := range []struct {
		new  metadata.NewStream
		want error
	}{
		{metadata.NewStream{Name: ""}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: ".."}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: "a/b"}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: strings.Repeat("a", 250)}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: "x", Partitions: -1}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: "x", Partitions: 1 << 20}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: "x", Journals: 1000}, metadata.ErrInvalidStream},
		{metadata.NewStream{Name: "x", Config: map[string]string{"nope": "1"}}, metadata.ErrInvalidConfig},
		{metadata.NewStream{Name: "a.b"}, metadata.ErrStreamExists},
		{metadata.NewStream{Name: "a_b"}, metadata.ErrStreamNameCollides},
	} {
		if _, err := n.CreateStream(context.Background(), c.new); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.new, err, c.want)
		}
	}
}

func TestProducerIDsAreNeverGivenTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := map[int64]bool{}
	for range 3 {
		n := openNode(t, dir)
		for range 1500 {
			id, err := n.NextProducerID(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] {
				t.Fatalf("id %d was given before", id)
			}
			seen[id] = true
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory whose name is not synced can vanish in a power cut, with all that
// was synced below it.
func TestDirectoriesOfNewStreamsAreMadeDurable(t *testing.T) {
	t.Parallel()
	faulty := vfs.NewFaulty(vfs.OS{})
	n := openNode(t, t.TempDir(), func(o *cluster.Options) { o.FS = faulty })
	create(t, n, metadata.NewStream{Name: "s"})
	faulty.Inject(vfs.Fault{Op: vfs.OpSyncDir, Name: "streams", Keep: true})
	if a := appendTo(t, n, "s", 0, "v"); a.Err == nil {
		t.Error("a record was acknowledged in a directory that may vanish")
	}
	faulty.Heal()
	eventually(t, "appending once the disk is well", func() error { return appendTo(t, n, "s", 0, "v").Err })
}
