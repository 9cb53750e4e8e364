package raftgroup_test

import (
	"path/filepath"
	"testing"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Raft notes the first term before the first configuration: a kill in between
// must not leave a group that nobody can ever lead.
func TestAGroupKilledWhileItIsFoundedStillStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g")
	j, err := storage.Open(dir, storage.Options{})
	must(t, err)
	must(t, j.SetUint64([]byte("CurrentTerm"), 1))
	must(t, j.Close())
	g := openGroup(t, raftgroup.Options{Dir: dir})
	if offset, err := put(g, 0, "v"); err != nil || offset != 0 {
		t.Errorf("the first record got offset %d, %v; want 0", offset, err)
	}
}
