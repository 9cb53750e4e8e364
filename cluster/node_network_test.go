package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/cable"
)

func TestNodesJoinAndKnowEachOther(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	for i, n := range c.Nodes() {
		if got, want := n.ID(), int32(i+1); got != want {
			t.Errorf("node %d has id %d", want, got)
		}
		must(t, n.Announce(t.Context(), map[string]string{"clients": fmt.Sprint("h", i)}))
	}
	for _, n := range c.Nodes() {
		must(t, n.SyncMeta(t.Context()))
		members := n.Members()
		if len(members) != 3 || n.ClusterID() != c.Node(0).ClusterID() {
			t.Fatalf("node %d knows %v of cluster %s", n.ID(), members, n.ClusterID())
		}
		for i, m := range members {
			if m.ID != int32(i+1) || m.Listeners["clients"] != fmt.Sprint("h", i) || m.Address == "" {
				t.Errorf("node %d knows %+v", n.ID(), m)
			}
		}
	}
	c.Controller()
}

// The metadata survives the loss of any one of three, and all come back without being told of each other.
func TestMetadataSurvivesANode(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	must(t, c.Node(2).CommitOffsets(t.Context(), "g", nil))
	untilVoters(t, c, 3)
	first := c.Controller()
	epoch, _ := c.Node(first).Coordinator()
	changed := c.Node(first).CoordinatorChanged()
	c.Stop(first)
	<-changed
	second := c.Controller()
	if next, ok := c.Node(second).Coordinator(); second == first || !ok || next <= epoch {
		t.Errorf("node %d coordinates in epoch %d, before %d did in %d", second, next, first, epoch)
	}
	if _, err := c.Node(second).CreateStream(t.Context(), metadata.NewStream{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if c.Node(i) != nil {
			c.Stop(i)
		}
	}
	for i := range 3 {
		c.Begin(i)
	}
	for i := range 3 {
		c.WaitReady(i)
		if _, ok := c.Node(i).Meta().Stream("s"); !ok {
			t.Errorf("node %d is ready and does not know the stream", i)
		}
	}
}

// Commands from all nodes take effect exactly once while the leaders come and go.
func TestCommandsTakeEffectOnceUnderLeaderChanges(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	var running sync.WaitGroup
	var acked atomic.Int64
	stop := make(chan struct{})
	for i := range 3 {
		running.Go(func() {
			for at := 0; ; at++ {
				select {
				case <-stop:
					return
				default:
				}
				n := c.Node(i)
				if n == nil {
					time.Sleep(time.Millisecond) // it is being restarted
					continue
				}
				// A second time it would be ErrConflict.
				_, err := n.PutTransaction(context.Background(), metadata.Transaction{ID: fmt.Sprint(i, "-", at), State: metadata.TxnEmpty, LastEpoch: -1})
				if err == nil {
					acked.Add(1)
				} else if !errors.Is(err, cluster.ErrClosed) {
					t.Errorf("node %d: %v", i, err)
					return
				}
			}
		})
	}
	more := func(n int64) {
		from := acked.Load()
		c.Until("more commands", func() bool { return acked.Load() >= from+n || t.Failed() })
	}
	for range 3 {
		more(20)
		at := c.Controller()
		c.Stop(at)
		more(10)
		c.Restart(at)
	}
	more(20)
	close(stop)
	running.Wait()
	must(t, c.Node(0).SyncMeta(t.Context()))
	if got := int64(len(c.Node(0).Meta().Transactions())); got < acked.Load() {
		t.Errorf("%d commands are there, %d were acknowledged", got, acked.Load())
	}
}

// untilVoters waits until so many nodes vote in the metadata group, which then can lose one.
func untilVoters(t *testing.T, c *clustertest.Cluster, n int) {
	t.Helper()
	c.Until(fmt.Sprint(n, " voters"), func() bool {
		s, err := c.Nodes()[0].Status(t.Context())
		return err == nil && len(s.Voters) == n
	})
}

// dialTo connects to one address whatever is asked for.
func dialTo(address string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestADirectoryOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c := clustertest.Start(t, 1)
	other := clustertest.Start(t, 2, func(o *cluster.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	dir := other.Dir(1)
	other.Stop(1)
	// The directory's peers are those of its own cluster; somebody gives it the address of another one's.
	other.Stop(0)
	o := cluster.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, nil)), Network: &cluster.Network{Timeout: time.Second, Dial: dialTo(c.Address(0))}}
	i := other.AddStopped(o)
	other.Begin(i)
	other.Until("the refusal to be told", func() bool { return strings.Contains(log.String(), "it belongs to cluster") })
}

func TestALostOrDamagedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	dir := c.Dir(2)
	c.Stop(2)
	open := func() error {
		n, err := cluster.Open(cluster.Options{Dir: dir, Network: &cluster.Network{Listener: cable.Listen(t, "127.0.0.1:0")}})
		if err == nil {
			_ = n.Close()
		}
		return err
	}
	must(t, os.Rename(filepath.Join(dir, "meta"), filepath.Join(dir, "moved")))
	if err := open(); err == nil || !strings.Contains(err.Error(), "was lost") {
		t.Errorf("without its metadata the node said %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "meta")))
	must(t, os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "meta")))
	b, err := os.ReadFile(filepath.Join(dir, "node.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(strings.Replace(string(b), `"node_id":3`, `"node_id":2`, 1)), 0o644))
	if err := open(); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("with a changed %s the node said %v", "node.json", err)
	}
	must(t, os.Remove(filepath.Join(dir, "node.json")))
	if err := open(); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without a node.json the node said %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "streams", "x"), 0o755))
	must(t, os.RemoveAll(filepath.Join(dir, "meta")))
	if err := open(); err == nil || !strings.Contains(err.Error(), "holds streams") {
		t.Errorf("with streams alone the node said %v", err)
	}
}
