package cluster_test

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// nodePromise is what a node has acknowledged: its streams by name with the records in each. A stream whose creation or
// removal is on its way may be there or not.
type nodePromise struct {
	records  map[string]int64
	doubtful string
}

// nodeCut is a disk as a cut left it.
type nodeCut struct {
	disk    *vfs.Mem
	promise nodePromise
}

// Wherever the power goes or the process is killed, over and over, no acknowledged stream is lost, none that was deleted
// comes back, and each has its records.
func TestCutsLoseNoStream(t *testing.T) {
	t.Parallel()
	times, _ := strconv.ParseInt(os.Getenv("DAYBOOK_SEEDS"), 10, 64)
	for seed := range 2 * max(1, times) {
		rng := rand.New(rand.NewSource(seed))
		for i, c := range cutNode(t, rng) {
			c.check(t, fmt.Sprintf("seed %d, cut %d", seed, i))
		}
	}
}

// cutNode lets a node create, fill and delete streams, and returns disks that cuts meanwhile leave.
func cutNode(t *testing.T, rng *rand.Rand) (cuts []nodeCut) {
	var mu sync.Mutex // guards all that the hook uses: the node works in several goroutines
	now := nodePromise{records: map[string]int64{}}
	mem := vfs.NewMem()
	disk := vfs.NewFaulty(mem)
	pick := rand.New(rand.NewSource(rng.Int63()))
	disk.Before = func(op vfs.Op, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if op == vfs.OpRead || pick.Intn(12) > 0 {
			return
		}
		promise := nodePromise{maps.Clone(now.records), now.doubtful} // before the disk, which may know more
		cuts = append(cuts, nodeCut{mem.CrashClone(pick), promise})
	}
	change := func(f func()) { mu.Lock(); f(); mu.Unlock() }
	n := openNode(t, "data", func(o *cluster.Options) { o.FS = disk })
	for step := range 60 {
		name := fmt.Sprint("s", rng.Intn(6))
		_, there := now.records[name]
		switch {
		case !there:
			change(func() { now.doubtful = name })
			create(t, n, metadata.NewStream{Name: name})
			change(func() { now.records[name], now.doubtful = 0, "" })
		case step%7 == 0:
			change(func() { now.doubtful = name })
			s, _ := n.Meta().Stream(name)
			if err := n.DeleteStream(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			change(func() { delete(now.records, name); now.doubtful = "" })
		default:
			mustAppend(t, n, name, 0, fmt.Sprint("value", step))
			change(func() { now.records[name]++ })
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return cuts
}

func (c *nodeCut) check(t *testing.T, what string) {
	t.Helper()
	for start := range 2 {
		n, err := cluster.Open(cluster.Options{Dir: "data", FS: c.disk, SegmentBytes: 64 << 10})
		if err != nil {
			t.Fatalf("%s, start %d: %v", what, start+1, err)
		}
		for name, records := range c.promise.records {
			if name == c.promise.doubtful {
				continue
			}
			if b := bounds(t, n, name); b.HighWatermark < records {
				t.Fatalf("%s, start %d: %s has %d records, %d were acknowledged", what, start+1, name, b.HighWatermark, records)
			}
		}
		for _, s := range n.Meta().Streams() {
			if _, ok := c.promise.records[s.Name]; !ok && s.Name != c.promise.doubtful {
				t.Fatalf("%s, start %d: %s is there again", what, start+1, s.Name)
			}
		}
		if strays := n.Strays(); len(strays) > 0 {
			t.Fatalf("%s, start %d: the metadata does not know %v", what, start+1, strays)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
