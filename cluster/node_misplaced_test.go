package cluster_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// A journal's directory that was put into another's place, or comes from another node, takes no part: the logs of all
// journals begin alike, and the longer one would win. Put back it is what it was.
func TestAMisplacedDirectoryTakesNoPart(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "a")
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "b", Replication: 3})
	must(t, err)
	acked := map[string]map[int64]string{"a": fill(c, "a", "a", 200), "b": fill(c, "b", "b", 5)}
	place := func(node int, stream string) string {
		s, ok := c.Node(0).Meta().Stream(stream)
		if !ok {
			t.Fatal("no stream", stream)
		}
		return filepath.Join(c.Dir(node), "streams", s.ID.String(), "0")
	}
	other := place(1, "b")
	a, b := place(2, "a"), place(2, "b")
	aside := filepath.Join(c.Dir(2), "aside")
	swap := func() {
		for _, m := range [][2]string{{a, aside}, {b, a}, {aside, b}} {
			must(t, os.Rename(m[0], m[1]))
		}
	}
	misplaced := func(streams ...string) func() bool {
		return func() bool {
			got, err := c.Node(0).Status(t.Context())
			if err != nil {
				return false
			}
			for _, j := range got.Journals {
				for _, r := range j.Replicas {
					if r.Node == 3 && slices.Contains(streams, j.Stream) != strings.Contains(r.Problem, "belongs to another copy") {
						return false
					}
				}
			}
			return c.Node(2).Health() != nil
		}
	}

	c.Stop(2)
	swap()
	c.Restart(2)
	c.Until("both copies to be refused", misplaced("a", "b"))
	c.Stop(2)
	swap()
	must(t, os.Rename(b, aside))
	must(t, os.CopyFS(b, os.DirFS(other)))
	c.Restart(2)
	c.Until("the copy of another node to be refused", misplaced("b"))
	c.Stop(2)
	must(t, os.RemoveAll(b))
	must(t, os.Rename(aside, b))
	c.Restart(2)
	c.Until("all to be in order", func() bool {
		got, err := c.Node(0).Status(t.Context())
		return err == nil && got.Counts.UnderReplicated == 0 && got.Counts.Problems == 0 && got.Counts.NodesDown == 0
	})
	for stream, values := range acked {
		wantReplica(t, c, 2, stream, values)
	}
}
