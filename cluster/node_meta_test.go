package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// damageMeta flips a bit in the middle of what a stopped node's metadata log has.
func damageMeta(t *testing.T, c *clustertest.Cluster, place int) {
	t.Helper()
	dir := filepath.Join(c.Dir(place), "meta")
	paths, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	must(t, err)
	slices.Sort(paths)
	flipBit(t, paths[0], 200)
	j, err := storage.Open(dir, storage.Options{Commands: true})
	var d *storage.DamageError
	if err == nil {
		err = j.Close()
	}
	if !errors.As(err, &d) {
		t.Fatalf("the log opens with %v; the test wants it damaged", err)
	}
}

// A node whose metadata log was damaged while it was down starts, with the metadata of the others, and votes again when it
// has everything: the cluster outlives another node then.
func TestANodeWithADamagedMetadataLogStarts(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	for i := range 5 {
		create(t, c.Node(0), metadata.NewStream{Name: fmt.Sprint("s", i)})
	}
	c.Stop(2)
	damageMeta(t, c, 2)
	n := c.Restart(2)
	for i := range 5 {
		if _, err := n.Partition(fmt.Sprint("s", i), 0); err != nil {
			t.Errorf("stream s%d on the node: %v", i, err)
		}
	}
	c.Until("the node to vote again", func() bool { return n.Soundness().Left == 0 })
	if s := n.Soundness(); s.Damaged != 1 || s.Mended != 1 || s.Left != 0 {
		t.Errorf("got %+v, want one damage, which is mended", s)
	}
	meta := filepath.Join(c.Dir(2), "meta")
	c.Stop(2)
	must(t, os.Rename(meta, meta+".next")) // as if the replacement had been cut off between its two renames
	if _, err := c.Restart(2).Partition("s0", 0); err != nil {
		t.Error(err)
	}
	c.Stop(0)
	create(t, c.Node(c.Controller()), metadata.NewStream{Name: "more", Replication: 1})
}

// loseSnapshots takes away from a stopped node what stands for the beginning of its metadata log, which is cut off.
func loseSnapshots(t *testing.T, c *clustertest.Cluster, place int) {
	t.Helper()
	dir := filepath.Join(c.Dir(place), "meta")
	j, err := storage.Open(dir, storage.Options{Commands: true})
	must(t, err)
	first, err := j.FirstIndex()
	must(t, err)
	last, err := j.LastIndex()
	must(t, err)
	must(t, j.DeleteRange(first, last-2))
	must(t, j.Close())
	must(t, os.WriteFile(filepath.Join(dir, "snapshots", fmt.Sprintf("%020d-%020d.snap", last-2, 1)), []byte("no snapshot"), 0o644))
}

// A node whose snapshots of the metadata are all bad comes up without any, gets the state from the leader, and votes again when
// it has it; what was kept of the bad ones is removed then.
func TestANodeWithoutAGoodSnapshotStarts(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3, func(o *cluster.Options) { o.RetainEvery = 50 * time.Millisecond })
	for i := range 5 {
		create(t, c.Node(0), metadata.NewStream{Name: fmt.Sprint("s", i)})
	}
	untilVoters(t, c, 3)
	c.Stop(2)
	loseSnapshots(t, c, 2)
	n := c.Restart(2)
	for i := range 5 {
		if _, err := n.Partition(fmt.Sprint("s", i), 0); err != nil {
			t.Errorf("stream s%d on the node: %v", i, err)
		}
	}
	c.Until("what was damaged to be removed", func() bool {
		_, err := os.Stat(filepath.Join(c.Dir(2), "meta.damaged"))
		return errors.Is(err, fs.ErrNotExist)
	})
	c.Stop(0)
	create(t, c.Node(c.Controller()), metadata.NewStream{Name: "more", Replication: 1})
}

// Where nobody else has the metadata for certain the node does not start, and says what is damaged and what to do.
func TestANodeAloneWithADamagedMetadataLogSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 1)
	create(t, c.Node(0), metadata.NewStream{Name: "s"})
	c.Stop(0)
	damageMeta(t, c, 0)
	_, err := cluster.Open(cluster.Options{Dir: c.Dir(0)})
	var d *storage.DamageError
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want a DamageError", err)
	}
	for _, want := range []string{d.File, "backup", "daybook journal repair"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
}
