package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// A node whose metadata's disk has failed says so to who wants to change the metadata there, whether it led it or not; the
// others go on.
func TestANodeWhoseMetadataEndedSaysSo(t *testing.T) {
	t.Parallel()
	var disks [3]*vfs.Faulty
	place := 0
	c := clustertest.Start(t, 3, func(o *cluster.Options) {
		disks[place] = vfs.NewFaulty(vfs.OS{})
		o.FS = disks[place]
		place++
	})
	untilVoters(t, c, 3)
	sick := c.Controller()
	well := (sick + 1) % 3
	disks[sick].Inject(vfs.Fault{Op: vfs.OpSync, Name: "meta", Keep: true})
	names := []string{"a", "b"}
	for i, name := range names {
		c.Until("the node to say what is wrong", func() bool {
			_, err := c.Node(sick).CreateStream(t.Context(), metadata.NewStream{Name: name})
			if i > 0 && !errors.Is(err, cluster.ErrReadOnly) {
				t.Fatalf("it says %v", err)
			}
			return errors.Is(err, cluster.ErrReadOnly) && strings.Contains(err.Error(), "takes no part in the cluster's metadata")
		})
	}
	if err := c.Node(sick).SyncMeta(t.Context()); !errors.Is(err, cluster.ErrReadOnly) {
		t.Errorf("a read barrier there says %v", err)
	}
	_, err := c.Node(well).CreateStream(t.Context(), metadata.NewStream{Name: "c"})
	must(t, err)
}
