package cluster_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
)

// logged collects what a node logs.
func logged() (*lines, func(*cluster.Options)) {
	l := &lines{}
	return l, func(o *cluster.Options) { o.Logger = slog.New(slog.NewTextHandler(l, nil)) }
}

// A cluster that has lost what was committed, and says something else at its place: the copy keeps what it has, serves
// it, and says so.
func TestADivergedUpstreamStopsTheCopyLoudly(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 1, "s")
	must(t, c.Node(0).SyncMeta(t.Context()))
	fill(c, "s", "both ", 3)
	c.Stop(0)
	before := t.TempDir()
	must(t, os.CopyFS(before, os.DirFS(c.Dir(0))))
	c.Restart(0)
	log, logging := logged()
	n, _ := observe(t, addresses(c, 1), logging)
	acked := fill(c, "s", "copied ", 3)
	wantCopy(t, c, n, "s", acked)
	c.Stop(0)
	must(t, os.RemoveAll(c.Dir(0)))
	must(t, os.CopyFS(c.Dir(0), os.DirFS(before)))
	c.Restart(0)
	fill(c, "s", "another ", 5)
	c.Until("the copy to stop", func() bool {
		s := n.Observer().Status()
		return len(s.Streams) == 1 && len(s.Streams[0].Stopped) == 1
	})
	wantCopy(t, c, n, "s", acked)
	if err := n.Observer().Ready(); err == nil || !strings.Contains(err.Error(), "copied no further") {
		t.Errorf("it is ready: %v", err)
	}
	if !strings.Contains(log.String(), "ANOTHER HISTORY") {
		t.Errorf("nothing loud was logged: %s", log.String())
	}
}

func TestAnObserverKeepsToItsCluster(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 1, "s")
	other := clustertest.Start(t, 1)
	dir := t.TempDir()
	n, _ := observe(t, addresses(c, 1), in(dir))
	acked := fill(c, "s", "a", 3)
	wantCopy(t, c, n, "s", acked)
	must(t, n.Close())
	log, logging := logged()
	n, _ = observe(t, addresses(other, 1), in(dir), logging)
	c.Until("the other cluster to be refused", func() bool {
		s := n.Observer().Status()
		return len(s.Upstreams) > 0 && strings.Contains(s.Upstreams[0].Error, "belongs to cluster") && strings.Contains(s.Upstreams[0].Error, "empty folder in place of "+dir)
	})
	wantCopy(t, c, n, "s", acked)
	if n.ClusterID() != c.Node(0).ClusterID() || !strings.Contains(log.String(), "does not want this observer") {
		t.Errorf("the observer is of cluster %s; it said %s", n.ClusterID(), log.String())
	}
	must(t, n.Close())
	for what, o := range map[string]cluster.Options{
		"an observer's directory opened as a node":   {Dir: dir},
		"a node's directory opened as an observer's": {Dir: other.Dir(0), Observe: &cluster.Observe{Upstreams: addresses(c, 1)}},
	} {
		if o.Observe != nil {
			other.Stop(0)
		}
		if n, err := cluster.Open(o); err == nil {
			t.Errorf("%s: it worked", what)
			must(t, n.Close())
		}
	}
}
