package cluster_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// A copy that was found to differ serves nothing after a restart either, before it could be compared, and is replaced when
// its directory is moved away.
func TestADivergedCopyServesNobodyAfterARestart(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	diverged := forgeCopy(t, c, s)
	for range 2 {
		c.Stop(1)
		c.Restart(1)
		c.Until("the copy to be refused after a restart", diverged)
		p, err := c.Node(1).Partition("s", 0)
		must(t, err)
		if f, err := p.Read(cluster.ReadRequest{MaxBytes: 1 << 20, Follower: true}); err == nil {
			t.Errorf("it serves %d bytes", f.Bytes)
		}
		if got := c.Node(1).Soundness(); got.Diverged != 1 || got.Compared != 0 {
			t.Errorf("got %+v, want one copy that differs, by what was found before", got)
		}
	}
	maps.Copy(acked, fill(c, "s", "goes on", 5))
	if !diverged() {
		t.Errorf("the copy is in order among the others: %v", c.Node(1).Health())
	}
	c.Stop(1)
	must(t, os.Rename(copyDir(c, 1, s), filepath.Join(t.TempDir(), "kept")))
	c.Restart(1)
	wantReplica(t, c, 1, "s", acked)
	if err := c.Node(1).Health(); errors.Is(err, raftgroup.ErrDiverged) {
		t.Errorf("the copy in its place says %v", err)
	}
}
