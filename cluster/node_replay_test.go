package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// A node that starts sees its metadata go through all that was, up to now. It gives up no copy by what the metadata said in
// between, however long it takes to open the others: the copy would come back blank, as the member that acknowledged what it had.
func TestANodeThatStartsGivesUpNoCopyByOldMetadata(t *testing.T) {
	t.Parallel()
	const journals = 16
	c := clustertest.Start(t, 2)
	s := create(t, c.Node(0), metadata.NewStream{Name: "s", Partitions: journals, Journals: journals, Replication: 2})
	slow := vfs.NewFaulty(vfs.OS{})
	restarted := make(chan struct{})
	slow.Before = func(op vfs.Op, name string) {
		select {
		case <-restarted:
			if op == vfs.OpOpen && strings.HasSuffix(name, "lock") && strings.Contains(name, s.ID.String()) {
				time.Sleep(300 * time.Millisecond) // a disk that takes its time: each journal is opened once
			}
		default:
		}
	}
	place := c.AddWith(cluster.Options{Dir: t.TempDir(), FS: slow, SegmentBytes: 256 << 10,
		Network: &cluster.Network{Timeout: time.Second, Join: []string{c.Address(0)}}})
	move := func(from, to int32) {
		for j := from; j < to; j++ {
			must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, j, []int32{1, 2, 3}))
		}
	}
	move(0, journals/2)
	for i := range 100 { // so that the replay takes its time between the first half's moves and the second's
		address := fmt.Sprintf("%s:%d", strings.Repeat("a", 64<<10), i+1)
		must(t, c.Node(0).Announce(t.Context(), map[string]string{"a": address}))
	}
	move(journals/2, journals)
	dir := func(j int) string { return filepath.Join(c.Dir(place), "streams", s.ID.String(), fmt.Sprint(j)) }
	c.Until("all copies to be in sync", func() bool { return inSync(c, s, 3) })
	before := make([]os.FileInfo, journals)
	for j := range journals {
		f, err := os.Open(dir(j))
		must(t, err)
		defer f.Close() // as long as it is open no other directory gets its inode
		before[j], err = f.Stat()
		must(t, err)
	}
	c.Stop(place)
	close(restarted)
	c.Restart(place)
	c.Until("all copies to be in sync again", func() bool { return inSync(c, s, 3) })
	for j := range journals {
		now, err := os.Stat(dir(j))
		if err != nil || !os.SameFile(before[j], now) {
			t.Errorf("journal %d was begun anew, %v: what the node had acknowledged of it is gone", j, err)
		}
	}
}

// inSync says whether all journals of a stream have so many copies in sync.
func inSync(c *clustertest.Cluster, s *metadata.Stream, copies int) bool {
	for number := range s.Partitions {
		p, err := c.Node(c.Leader(s.Name, number)).Partition(s.Name, number)
		if err != nil || len(p.InSync()) < copies {
			return false
		}
	}
	return true
}
