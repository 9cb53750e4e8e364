package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// replicated starts nodes with a stream that all have.
func replicated(t *testing.T, n int, name string, change ...func(*cluster.Options)) (*clustertest.Cluster, *metadata.Stream) {
	t.Helper()
	c := clustertest.Start(t, n, change...)
	untilVoters(t, c, n-1+n%2)
	s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: name, Partitions: 2, Replication: int32(min(n, 3))})
	must(t, err)
	return c, s
}

func fill(c *clustertest.Cluster, stream, tag string, n int) (offsets map[int64]string) {
	offsets = map[int64]string{}
	for i := range n {
		value := fmt.Sprint(tag, i)
		offsets[c.Append(stream, 0, func() []byte { return storagetest.Batch(value) })] = value
	}
	return offsets
}

// wantReplica waits until the node at a place has, as a replica, everything that was acknowledged, where it was.
func wantReplica(t *testing.T, c *clustertest.Cluster, place int, stream string, acked map[int64]string) {
	t.Helper()
	c.Until(fmt.Sprintf("all of %s at node %d", stream, place), func() bool {
		p, err := c.Node(place).Partition(stream, 0)
		if err != nil {
			return false
		}
		b, err := p.Known()
		if err != nil {
			return false
		}
		for offset, value := range acked {
			if offset >= b.HighWatermark {
				return false
			}
			f, err := p.Read(cluster.ReadRequest{Offset: offset, MaxBytes: 1, WholeBatch: true, Follower: true})
			if err != nil {
				return false
			}
			got := slices.Concat(f.Pieces...)
			f.Release()
			if want := storagetest.Batch(value); !sameRecord(got, want) {
				t.Fatalf("node %d has something else than %q at offset %d", place, value, offset)
			}
		}
		return true
	})
}

// sameRecord compares what is behind the fields that the journal fills in.
func sameRecord(got, want []byte) bool {
	const behindEpoch = 17 // of the batch header: base offset, length, leader epoch, magic, checksum
	return len(got) >= len(want) && slices.Equal(got[behindEpoch:len(want)], want[behindEpoch:])
}

func TestNothingAcknowledgedIsLostWithTheLeader(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	acked := fill(c, "s", "a", 20)
	for round := range 3 {
		leader := c.Leader("s", 0)
		p, err := c.Node(leader).Partition("s", 0)
		must(t, err)
		_, before := p.Leader()
		c.Stop(leader)
		for offset, value := range fill(c, "s", fmt.Sprint("round", round, "-"), 10) {
			acked[offset] = value
		}
		next, err := c.Node(c.Leader("s", 0)).Partition("s", 0)
		must(t, err)
		if _, after := next.Leader(); after <= before {
			t.Errorf("the epoch is %d, it was %d", after, before)
		}
		c.Restart(leader)
		wantReplica(t, c, leader, "s", acked)
	}
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
}

// Every node knows who leads what, also those that have no replica; who does not lead says so.
func TestEveryNodeKnowsTheLeader(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	untilVoters(t, c, 3)
	s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s", Replication: 1})
	must(t, err)
	leader := c.Leader("s", 0)
	id := c.Node(leader).ID()
	for i, n := range c.Nodes() {
		must(t, n.SyncMeta(t.Context()))
		p, err := n.Partition("s", 0)
		must(t, err)
		c.Until("the leader to be known", func() bool { node, _ := p.Leader(); return node == id })
		if got := p.Replicas(); !slices.Equal(got, []int32{id}) {
			t.Errorf("node %d: replicas %v, want %d", i, got, id)
		}
		if i == leader {
			continue
		}
		if _, err := p.Bounds(); !errors.Is(err, cluster.ErrNotLeader) {
			t.Errorf("node %d: Bounds says %v", i, err)
		}
		if a := appendTo(t, n, "s", 0, "x"); !errors.Is(a.Err, cluster.ErrNotLeader) {
			t.Errorf("node %d: Append says %v", i, a.Err)
		}
	}
	if _, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "more", Replication: 4}); !errors.Is(err, metadata.ErrInvalidReplication) {
		t.Errorf("four replicas on three nodes: %v", err)
	}
	must(t, c.Node((leader+1)%3).DeleteStream(t.Context(), s.ID))
	c.Until("the files to go", func() bool {
		_, err := os.Stat(filepath.Join(c.Dir(leader), "streams", s.ID.String()))
		return os.IsNotExist(err)
	})
}

// A journal moves to another node while it is appended to, and its old files go.
func TestAJournalMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 4)
	untilVoters(t, c, 3)
	s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s"})
	must(t, err)
	acked := fill(c, "s", "before", 30)
	p, err := c.Node(0).Partition("s", 0)
	must(t, err)
	old := p.Replicas()
	away := old[0]
	next := []int32{1, 2, 3, 4}
	next = slices.DeleteFunc(next, func(id int32) bool { return id == away })
	must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, next))
	for offset, value := range fill(c, "s", "during", 30) {
		acked[offset] = value
	}
	c.Until("the old copy to go", func() bool {
		names, err := os.ReadDir(filepath.Join(c.Dir(c.Place(away)), "streams", s.ID.String(), "0"))
		return os.IsNotExist(err) || err == nil && len(names) == 0
	})
	for _, id := range next {
		wantReplica(t, c, c.Place(id), "s", acked)
	}
	// And back to where it was: the new copy is another one than that which was there.
	must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, old))
	wantReplica(t, c, c.Place(away), "s", acked)
	for offset, value := range fill(c, "s", "after", 10) {
		acked[offset] = value
	}
	for _, id := range old {
		wantReplica(t, c, c.Place(id), "s", acked)
	}
}

// A journal moves away from who leads it, again and again, so that copies come to nodes that have just given one up: each
// move is over soon, and nothing is lost.
func TestAJournalMovesAwayFromItsLeaders(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 4)
	untilVoters(t, c, 3)
	s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s"})
	must(t, err)
	acked := fill(c, "s", "before", 10)
	for round := range 5 {
		away := c.Node(c.Leader("s", 0)).ID()
		next := slices.DeleteFunc([]int32{1, 2, 3, 4}, func(id int32) bool { return id == away })
		must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, next))
		for offset, value := range fill(c, "s", fmt.Sprint("round", round, "-"), 10) {
			acked[offset] = value
		}
		c.Until("another leader", func() bool { return c.Node(c.Leader("s", 0)).ID() != away })
		for _, id := range next {
			wantReplica(t, c, c.Place(id), "s", acked)
		}
	}
}

// A replica whose files are gone comes back as a new one, with everything.
func TestALostReplicaIsFilledAgain(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	acked := fill(c, "s", "a", 20)
	lost := (c.Leader("s", 0) + 1) % 3
	wantReplica(t, c, lost, "s", acked)
	c.Stop(lost)
	must(t, os.RemoveAll(filepath.Join(c.Dir(lost), "streams", s.ID.String(), "0")))
	c.Restart(lost)
	for offset, value := range fill(c, "s", "b", 10) {
		acked[offset] = value
	}
	wantReplica(t, c, lost, "s", acked)
}

// A node that was alone takes others in, and its data spreads to them.
func TestANodeThatWasAloneGrows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, dir)
	s := create(t, n, metadata.NewStream{Name: "s"})
	acked := map[int64]string{}
	for i := range 20 {
		value := fmt.Sprint("alone", i)
		acked[mustAppend(t, n, "s", 0, value)] = value
	}
	cluster1 := n.ClusterID()
	must(t, n.Close())
	c := clustertest.Start(t, 0)
	c.AddWith(cluster.Options{Dir: dir, SegmentBytes: 64 << 10, Network: &cluster.Network{}})
	c.Add()
	c.Add()
	if got := c.Node(2).ClusterID(); got != cluster1 {
		t.Errorf("the cluster is %s, it was %s", got, cluster1)
	}
	must(t, c.Node(2).Moves().SetReplicas(t.Context(), s.ID, 0, []int32{1, 2, 3}))
	for offset, value := range fill(c, "s", "more", 10) {
		acked[offset] = value
	}
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
	untilVoters(t, c, 3)
	c.Until("all to count", func() bool {
		p, err := c.Node(c.Leader("s", 0)).Partition("s", 0)
		return err == nil && len(p.InSync()) == 3
	})
}

// A marker reaches the leader from any node, also while the leader changes.
func TestAMarkerIsWrittenFromAnyNode(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	acked := fill(c, "s", "a", 3)
	for i := range 3 {
		key := metadata.StreamPartition{Stream: s.ID}
		must(t, c.Node(i).WriteMarker(t.Context(), key, int64(100+i), 0, true, 1))
	}
	leader := c.Leader("s", 0)
	p, err := c.Node(leader).Partition("s", 0)
	must(t, err)
	b, err := p.Bounds()
	must(t, err)
	if want := int64(len(acked) + 3); b.HighWatermark != want {
		t.Errorf("the partition ends at %d, want %d", b.HighWatermark, want)
	}
}

// What was deleted from the front is gone on all replicas.
func TestDeletedRecordsAreGoneOnAllReplicas(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	fill(c, "s", "a", 20)
	p, err := c.Node(c.Leader("s", 0)).Partition("s", 0)
	must(t, err)
	start, err := p.DeleteBefore(7)
	if err != nil || start != 7 {
		t.Fatalf("got %d, %v", start, err)
	}
	for i, n := range c.Nodes() {
		c.Until(fmt.Sprint("the start at node ", i), func() bool {
			p, err := n.Partition("s", 0)
			if err != nil {
				return false
			}
			b, err := p.Known()
			return err == nil && b.Start == 7
		})
	}
}
