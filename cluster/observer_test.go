package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/cable"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// observe starts an observer of some addresses that others can observe in turn, and returns it with its own address.
func observe(t *testing.T, upstreams []string, change ...func(*cluster.Options)) (*cluster.Node, string) {
	t.Helper()
	l := cable.Listen(t, "127.0.0.1:0")
	o := cluster.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, Observe: &cluster.Observe{Upstreams: upstreams, Listener: l, Timeout: 2 * time.Second}}
	for _, f := range change {
		f(&o)
	}
	n, err := cluster.Open(o)
	must(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n, l.Addr().String()
}

func in(dir string) func(*cluster.Options) { return func(o *cluster.Options) { o.Dir = dir } }

// wantCopy waits until a node has everything that was acknowledged of a stream, where it was.
func wantCopy(t *testing.T, c *clustertest.Cluster, n *cluster.Node, stream string, acked map[int64]string) {
	t.Helper()
	c.Until(fmt.Sprintf("all of %s at observer %d", stream, n.ID()), func() bool {
		p, err := n.Partition(stream, 0)
		if err != nil {
			return false
		}
		b, err := p.Bounds()
		if err != nil {
			return false
		}
		for offset, value := range acked {
			if offset >= b.HighWatermark {
				return false
			}
			f, err := p.Read(cluster.ReadRequest{Offset: offset, MaxBytes: 1, WholeBatch: true})
			if err != nil {
				return false
			}
			got := slices.Concat(f.Pieces...)
			f.Release()
			if want := storagetest.Batch(value); !sameRecord(got, want) {
				t.Fatalf("observer %d has something else than %q at offset %d", n.ID(), value, offset)
			}
		}
		return true
	})
}

func addresses(c *clustertest.Cluster, n int) (all []string) {
	for i := range n {
		all = append(all, c.Address(i))
	}
	return all
}

// Two levels deep, from a cluster whose nodes come and go: all of it, in the same bytes, and nothing that a voter sees.
func TestObserversHaveWhatTheClusterHas(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	acked := fill(c, "s", "before", 10)
	firstDir, secondDir := t.TempDir(), t.TempDir()
	first, address := observe(t, addresses(c, 3), in(firstDir))
	second, _ := observe(t, []string{address}, in(secondDir))
	wantCopy(t, c, second, "s", acked)
	leader := c.Leader("s", 0)
	c.Stop(leader)
	for offset, value := range fill(c, "s", "under another leader ", 10) {
		acked[offset] = value
	}
	wantCopy(t, c, second, "s", acked)
	c.Restart(leader)
	wantCopy(t, c, first, "s", acked)
	for _, n := range c.Nodes() {
		if got := n.Members(); len(got) != 3 {
			t.Errorf("node %d knows the members %+v", n.ID(), got)
		}
	}
	for _, n := range []*cluster.Node{first, second} {
		if got, want := n.ClusterID(), c.Node(0).ClusterID(); got != want {
			t.Errorf("observer %d is of cluster %q, want %q", n.ID(), got, want)
		}
		got, ok := n.Meta().Stream("s")
		if !ok || got.ID != s.ID || got.Partitions != 2 || len(got.Placement) > 0 {
			t.Errorf("observer %d knows the stream as %+v", n.ID(), got)
		}
		c.Until("no lag", func() bool {
			st := n.Observer().Status()
			return n.Observer().Ready() == nil && len(st.Streams) == 1 && st.Streams[0].LagRecords == 0 && st.Streams[0].LagBytes == 0 && st.Streams[0].Lag < time.Second
		})
	}
	must(t, first.Close())
	must(t, second.Close())
	lead := c.Leader("s", 0)
	for i := range 3 {
		c.Stop(i)
	}
	wantSameFrames(t, s, c.Dir(lead), firstDir, secondDir)
}

// wantSameFrames compares what closed directories have of a stream, but for the notes that each node writes itself.
func wantSameFrames(t *testing.T, s *metadata.Stream, dirs ...string) {
	t.Helper()
	var want *storage.Journal
	for _, dir := range dirs {
		j, err := storage.Open(datadir.JournalDirs(dir, s)[0], storage.Options{})
		must(t, err)
		defer j.Close()
		if want == nil {
			want = j
		}
		if end, all := j.End().Index, want.End().Index; end == 0 || end > all {
			t.Fatalf("%s ends at entry %d, the leader's log at %d", dir, end, all)
		}
		for i := uint64(1); i <= j.End().Index; i++ {
			a, err := want.Frame(i)
			must(t, err)
			b, err := j.Frame(i)
			must(t, err)
			if !slices.Equal(a, b) {
				t.Errorf("entry %d differs in %s", i, dir)
			}
		}
	}
}

func TestAnObserverOnlyReads(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 1, "s")
	acked := fill(c, "s", "a", 3)
	n, _ := observe(t, addresses(c, 1))
	wantCopy(t, c, n, "s", acked)
	p, err := n.Partition("s", 0)
	must(t, err)
	ctx := t.Context()
	_, create := n.CreateStream(ctx, metadata.NewStream{Name: "other"})
	_, trim := p.DeleteBefore(1)
	for what, err := range map[string]error{
		"an append":    p.Append(ctx, storagetest.Batch("x"), func(cluster.Appended) { t.Error("it was answered") }),
		"a marker":     p.AppendMarker(ctx, 1, 0, true, func(cluster.Appended) { t.Error("it was answered") }),
		"a new stream": create,
		"a trim":       trim,
		"a larger one": n.GrowStream(ctx, s.ID, 5),
		"a deletion":   n.DeleteStream(ctx, s.ID),
		"a setting":    n.ConfigureStream(ctx, s.ID, cluster.ConfigChange{Set: map[string]string{"retention.ms": "1"}}),
		"a credential": n.PutCredential(ctx, "ann", metadata.Credential{Mechanism: "SCRAM-SHA-256"}),
	} {
		if !errors.Is(err, cluster.ErrObserver) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if id := n.ID(); id < 1<<30 {
		t.Errorf("the observer's id is %d", id)
	}
	if got := p.Replicas(); !slices.Equal(got, []int32{n.ID()}) {
		t.Errorf("its replicas are %v", got)
	}
}

// What is created, grown, configured, trimmed and deleted in the cluster is so at observers, and a stream of the same name
// as a deleted one is another.
func TestObserversFollowTheStreams(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	n, address := observe(t, addresses(c, 3))
	farDir := t.TempDir()
	far, _ := observe(t, []string{address}, in(farDir))
	acked := fill(c, "s", "a", 10)
	wantCopy(t, c, far, "s", acked)
	ctx := t.Context()
	must(t, c.Node(0).GrowStream(ctx, s.ID, 4))
	must(t, c.Node(1).ConfigureStream(ctx, s.ID, cluster.ConfigChange{Set: map[string]string{"retention.ms": "123456789"}}))
	lead, err := c.Node(c.Leader("s", 0)).Partition("s", 0)
	must(t, err)
	_, err = lead.DeleteBefore(4)
	must(t, err)
	c.Until("the change at the observers", func() bool {
		for _, o := range []*cluster.Node{n, far} {
			got, ok := o.Meta().Stream("s")
			if !ok || got.Partitions != 4 || got.Value("retention.ms") != "123456789" {
				return false
			}
			p, err := o.Partition("s", 0)
			must(t, err)
			if b, err := p.Bounds(); err != nil || b.Start != 4 {
				return false
			}
		}
		return true
	})
	must(t, c.Node(2).DeleteStream(ctx, s.ID))
	again, err := c.Node(2).CreateStream(ctx, metadata.NewStream{Name: "s"})
	must(t, err)
	acked = fill(c, "s", "another ", 5)
	wantCopy(t, c, far, "s", acked)
	if got, _ := far.Meta().Stream("s"); got.ID != again.ID {
		t.Errorf("the stream is %v, want %v", got.ID, again.ID)
	}
	c.Until("the old stream's files to go", func() bool {
		_, err := os.Stat(filepath.Join(farDir, "streams", s.ID.String()))
		return errors.Is(err, os.ErrNotExist)
	})
}

// An observer that comes late begins where the cluster's log does, and so does one that was away for too long.
func TestAnObserverBeginsWhereTheFrontIs(t *testing.T) {
	t.Parallel()
	short := func(o *cluster.Options) { o.SegmentBytes, o.RetainEvery = 4<<10, 50*time.Millisecond }
	c, s := replicated(t, 1, "s", short)
	dir := t.TempDir()
	away, _ := observe(t, addresses(c, 1), in(dir))
	wantCopy(t, c, away, "s", fill(c, "s", "early ", 5))
	must(t, away.Close())
	must(t, c.Node(0).ConfigureStream(t.Context(), s.ID, cluster.ConfigChange{Set: map[string]string{"retention.bytes": "20000"}}))
	p, err := c.Node(0).Partition("s", 0)
	must(t, err)
	c.Until("old records to go", func() bool {
		fill(c, "s", strings.Repeat("long ", 200), 10)
		b, err := p.Bounds()
		return err == nil && b.Start > 10
	})
	must(t, c.Node(0).ConfigureStream(t.Context(), s.ID, cluster.ConfigChange{Delete: []string{"retention.bytes"}}))
	late, _ := observe(t, addresses(c, 1))
	away, _ = observe(t, addresses(c, 1), in(dir))
	acked := fill(c, "s", "late ", 5)
	for _, n := range []*cluster.Node{late, away} {
		wantCopy(t, c, n, "s", acked)
		q, err := n.Partition("s", 0)
		must(t, err)
		got, err := q.Bounds()
		must(t, err)
		if want, err := p.Bounds(); err != nil || got != want {
			t.Errorf("an observer has %+v, the cluster %+v (%v)", got, want, err)
		}
	}
}

// A restart needs nobody: what is there can be read, and copying goes on behind it. An upstream that has less is waited for.
func TestAnObserverGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	dir := t.TempDir()
	n, _ := observe(t, addresses(c, 3), in(dir))
	acked := fill(c, "s", "a", 20)
	wantCopy(t, c, n, "s", acked)
	must(t, n.Close())
	gone := cable.Listen(t, "127.0.0.1:0")
	must(t, gone.Close())
	n, _ = observe(t, []string{gone.Addr().String()}, func(o *cluster.Options) { o.Dir, o.Observe.Dial = dir, refuse })
	wantCopy(t, c, n, "s", acked)
	if err := n.Observer().Ready(); err == nil || !strings.Contains(err.Error(), "no upstream is connected") {
		t.Errorf("it is ready without an upstream: %v", err)
	}
	must(t, n.Close())
	n, _ = observe(t, addresses(c, 3), in(dir))
	for offset, value := range fill(c, "s", "b", 5) {
		acked[offset] = value
	}
	wantCopy(t, c, n, "s", acked)
}

func refuse(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
