package cluster_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// A closed copy that is damaged behind all that the others have committed, as it led when it was cut off, is replaced also
// when nothing more is appended.
func TestACopyDamagedBehindAllThatIsCommittedIsReplaced(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s", unscrubbed)
	acked := manySegments(t, c, s)
	c.Stop(1)
	before := len(segmentsOf(t, c, 1, s))
	addTail(t, copyDir(c, 1, s))
	all := segmentsOf(t, c, 1, s)
	if len(all) < before+2 {
		t.Fatalf("the tail has %d segments, want 2 at least", len(all)-before)
	}
	sealed := all[len(all)-2]
	flipBit(t, sealed, 70)
	must(t, os.Remove(strings.TrimSuffix(sealed, ".seg")+".idx")) // so that the start reads the segment
	c.Restart(1)
	c.Until("another copy", func() bool {
		n, ok := c.Node(1).Meta().StreamByID(s.ID)
		return ok && slices.ContainsFunc(n.Placement[0], func(r metadata.Replica) bool { return r.Node == c.Node(1).ID() && r.Born > 0 })
	})
	wantReplica(t, c, 1, "s", acked)
	wantSound(t, c, s, 0, 1, 2)
}

// addTail gives a closed copy entries that nobody else has.
func addTail(t *testing.T, dir string) {
	t.Helper()
	j, err := storage.Open(dir, storage.Options{SegmentBytes: 8 << 10})
	must(t, err)
	last, err := j.LastIndex()
	must(t, err)
	var l raft.Log
	must(t, j.GetLog(last, &l))
	for i := range uint64(100) {
		b := &storage.Batch{Data: storagetest.Batch(fmt.Sprint("never committed ", i, strings.Repeat("z", 300)))}
		must(t, b.Check())
		p := &storage.Proposal{Batches: []*storage.Batch{b}}
		data, err := j.Propose(p)
		must(t, err)
		must(t, j.StoreLog(&raft.Log{Index: last + 1 + i, Term: l.Term, Type: raft.LogCommand, Data: data}))
		j.Withdraw(p)
	}
	must(t, j.Close())
}
