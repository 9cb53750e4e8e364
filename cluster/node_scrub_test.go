package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// smallSegments makes journals of many segments, and leaders that a busy machine does not make lose the lead.
func smallSegments(o *cluster.Options) {
	o.SegmentBytes = 16 << 10
	o.Network.Timeout = 3 * time.Second
}

// scrubbed makes a node look for damage all the time.
func scrubbed(o *cluster.Options) {
	smallSegments(o)
	o.Scrub = cluster.ScrubOptions{BytesPerSecond: 1 << 30, Every: 50 * time.Millisecond, Compare: 50 * time.Millisecond}
}

// unscrubbed makes a node find damage only where somebody reads.
func unscrubbed(o *cluster.Options) {
	smallSegments(o)
	o.Scrub = cluster.ScrubOptions{BytesPerSecond: -1, Compare: 50 * time.Millisecond}
}

// manySegments fills a stream until the copies on all nodes have several sealed segments, and returns what was
// acknowledged.
func manySegments(t *testing.T, c *clustertest.Cluster, s *metadata.Stream) map[int64]string {
	t.Helper()
	acked := fill(c, s.Name, strings.Repeat("x", 900), 100)
	for i := range len(c.Nodes()) {
		wantReplica(t, c, i, s.Name, acked)
		if n := len(segmentsOf(t, c, i, s)); n < 4 {
			t.Fatalf("node %d has %d segments, want several", i, n)
		}
	}
	return acked
}

func copyDir(c *clustertest.Cluster, place int, s *metadata.Stream) string {
	return filepath.Join(c.Dir(place), "streams", s.ID.String(), "0")
}

// segmentsOf are the segments of a node's copy, in order.
func segmentsOf(t *testing.T, c *clustertest.Cluster, place int, s *metadata.Stream) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(copyDir(c, place, s), "*.seg"))
	must(t, err)
	slices.Sort(paths)
	return paths
}

// flipBit damages a file as a disk does.
func flipBit(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], at)
	must(t, err)
	must(t, f.Sync())
}

// untilMended waits until a node has mended so many segments, and all that it has is in order.
func untilMended(c *clustertest.Cluster, place int, n uint64) {
	c.Until(fmt.Sprintf("%d mended segments on node %d", n, place), func() bool {
		s := c.Node(place).Soundness()
		return s.Mended >= n && s.Left == 0
	})
}

// wantSound closes all nodes and reads every byte of their copies.
func wantSound(t *testing.T, c *clustertest.Cluster, s *metadata.Stream, places ...int) {
	t.Helper()
	for _, i := range places {
		c.Stop(i)
	}
	for _, i := range places {
		r, err := storage.VerifyFS(vfs.OS{}, copyDir(c, i, s))
		must(t, err)
		if len(r.Problems) > 0 {
			t.Errorf("node %d: %v", i, r.Problems)
		}
	}
}

// Bits that flip on the disks of a leader and of a follower are found by reading the disk, mended from a healthy copy, and
// never served. Who leads hands over.
func TestDamageIsMendedFromAHealthyCopy(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", scrubbed)
	acked := manySegments(t, c, s)
	for round := range 2 {
		damaged := c.Leader("s", 0)
		p, err := c.Node(damaged).Partition("s", 0)
		must(t, err)
		_, before := p.Leader()
		if round == 1 {
			damaged = (damaged + 1) % 3
		}
		had := c.Node(damaged).Soundness().Mended
		flipBit(t, segmentsOf(t, c, damaged, s)[1], 5000)
		untilMended(c, damaged, had+1)
		if round == 0 {
			c.Until("another leader", func() bool { _, now := p.Leader(); return now > before })
		}
		wantReplica(t, c, damaged, "s", acked)
		maps.Copy(acked, fill(c, "s", fmt.Sprint("round", round), 5))
	}
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
		c.Until("health", func() bool { return c.Node(i).Health() == nil })
	}
	wantSound(t, c, s, 0, 1, 2)
}

// Two of three copies damaged at different places are mended by each other and the third.
func TestTwoCopiesDamagedAtDifferentPlacesAreMended(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", scrubbed)
	acked := manySegments(t, c, s)
	flipBit(t, segmentsOf(t, c, 0, s)[1], 5000)
	flipBit(t, segmentsOf(t, c, 0, s)[2], 70)
	flipBit(t, segmentsOf(t, c, 1, s)[1], 9000)
	untilMended(c, 0, 2)
	untilMended(c, 1, 1)
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
	wantSound(t, c, s, 0, 1, 2)
}

// A leader whose disk is damaged where nobody has looked learns it from the new copy that it sends to: it looks at its own,
// hands over, is mended, and the new copy gets everything.
func TestALeaderLearnsOfItsDamageFromWhoItSendsTo(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	c.Add()
	leader := c.Leader("s", 0)
	flipBit(t, segmentsOf(t, c, leader, s)[1], 5000)
	ids := []int32{c.Node(0).ID(), c.Node(1).ID(), c.Node(2).ID(), c.Node(3).ID()}
	c.Until("the new copy to be wanted", func() bool { return c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, ids) == nil })
	wantReplica(t, c, 3, "s", acked)
	untilMended(c, leader, 1)
	wantReplica(t, c, leader, "s", acked)
	wantSound(t, c, s, 0, 1, 2, 3)
}

// A reader that meets damage has it mended.
func TestAReaderThatMeetsDamageHasItMended(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	path := segmentsOf(t, c, 2, s)[1]
	b, err := os.ReadFile(path)
	must(t, err)
	flipBit(t, path, int64(bytes.LastIndex(b[:8000], bytes.Repeat([]byte{'x'}, 100)))) // of a record: readers look at nothing else
	wantReplica(t, c, 2, "s", acked)
	untilMended(c, 2, 1)
	wantSound(t, c, s, 0, 1, 2)
}

// A copy that does not open because of a damaged sealed segment is mended before it does.
func TestACopyThatDoesNotOpenIsMended(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	c.Stop(1)
	for _, i := range []int{1, 2} {
		path := segmentsOf(t, c, 1, s)[i]
		flipBit(t, path, 5000)
		must(t, os.Remove(strings.TrimSuffix(path, ".seg")+".idx")) // so that the start reads the segment
	}
	maps.Copy(acked, fill(c, "s", "meanwhile", 5))
	c.Restart(1)
	wantReplica(t, c, 1, "s", acked)
	if got := c.Node(1).Soundness(); got.Mended < 2 {
		t.Errorf("got %+v, want two mended segments", got)
	}
	wantSound(t, c, s, 0, 1, 2)
}

// A copy whose end is damaged, where nothing vouches for what should be there, is replaced by a new one. Its files are kept
// until that counts.
func TestACopyWithADamagedEndIsReplaced(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	c.Stop(1)
	all := segmentsOf(t, c, 1, s)
	flipBit(t, all[len(all)-1], 70)
	kept := func() int {
		names, err := filepath.Glob(copyDir(c, 1, s) + ".damaged-*")
		must(t, err)
		return len(names)
	}
	c.Restart(1)
	c.Until("another copy", func() bool {
		n, ok := c.Node(1).Meta().StreamByID(s.ID)
		return ok && slices.ContainsFunc(n.Placement[0], func(r metadata.Replica) bool { return r.Node == c.Node(1).ID() && r.Born > 0 })
	})
	wantReplica(t, c, 1, "s", acked)
	c.Until("the damaged files to go", func() bool { return kept() == 0 })
	wantSound(t, c, s, 0, 1, 2)
}

// A copy that is whole, and not the same as the others, serves nobody; the others go on.
func TestACopyThatDiffersServesNobody(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	forgeCopy(t, c, s)
	p, err := c.Node(1).Partition("s", 0)
	must(t, err)
	if f, err := p.Read(cluster.ReadRequest{MaxBytes: 1 << 20, Follower: true}); err == nil {
		t.Errorf("it serves %d bytes", f.Bytes)
	}
	if got := c.Node(1).Soundness(); got.Diverged != 1 {
		t.Errorf("got %+v, want one copy that differs", got)
	}
	maps.Copy(acked, fill(c, "s", "goes on", 5))
	for _, i := range []int{0, 2} {
		wantReplica(t, c, i, "s", acked)
	}
	if err := c.Node(0).Health(); errors.Is(err, raftgroup.ErrDiverged) {
		t.Errorf("a copy that agrees with most says %v", err)
	}
}

// forgeCopy makes node 1's copy differ from the others, waits until that is found, and returns what says whether it is.
func forgeCopy(t *testing.T, c *clustertest.Cluster, s *metadata.Stream) (diverged func() bool) {
	t.Helper()
	c.Stop(1)
	forge(t, copyDir(c, 1, s))
	c.Restart(1)
	diverged = func() bool { return errors.Is(c.Node(1).Health(), raftgroup.ErrDiverged) }
	c.Until("the copy to be refused", diverged)
	return diverged
}

// forge changes the first record of a closed copy, and all checksums so that they fit.
func forge(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	must(t, err)
	slices.Sort(paths)
	var next *forged
	for i, path := range paths {
		index, err := filepath.Glob(strings.TrimSuffix(path, ".seg") + ".[ikt][di]x")
		must(t, err)
		for _, x := range index {
			must(t, os.Remove(x))
		}
		b, err := os.ReadFile(path)
		must(t, err)
		used := len(b)
		if i+1 < len(paths) {
			used = int(position(t, paths[i+1]) - position(t, path))
		}
		next = forgeSegment(b[:used], position(t, path), next)
		must(t, os.WriteFile(path, b, 0o644))
	}
	if next == nil {
		t.Fatal("nothing was forged")
	}
}

func position(t *testing.T, path string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), ".seg"), 10, 64)
	must(t, err)
	return n
}
