package cluster_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// Whichever replica is asked finds what was acknowledged before, at once, also in journals that others lead.
func TestALookupFindsWhatWasAcknowledgedOnAnyReplica(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 4)
	s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{
		Name: "s", Partitions: 2, Placement: [][]int32{{1, 2, 3}, {2, 3, 1}}, Config: map[string]string{metadata.SettingKeyIndex: "true"},
	})
	must(t, err)
	for i := range 30 {
		value := fmt.Sprint("v", i)
		c.Append("s", int32(i%2), func() []byte { return keyedRecord("k", value) })
		n := c.Node(i % 3)
		c.Until("an answer", func() bool { // none while leads change
			r, ok, err := n.Latest(t.Context(), "s", []byte("k"))
			if err != nil {
				return false
			}
			if !ok || string(r.Value) != value {
				t.Fatalf("node %d finds %q after %q was acknowledged", n.ID(), r.Value, value)
			}
			return true
		})
	}
	if _, err := lookup(t, c.Node(3), "s", "k", cluster.OldestFirst); !errors.Is(err, cluster.ErrNotLeader) {
		t.Errorf("a node without a copy of %s says %v", s.Name, err)
	}
}

// A replica that cannot ask a leader does not pretend that what it has is all there is.
func TestALookupWithoutALeaderFails(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	must(t, c.Node(0).ConfigureStream(t.Context(), s.ID, cluster.ConfigChange{Set: map[string]string{metadata.SettingKeyIndex: "true"}}))
	c.Append("s", 0, func() []byte { return keyedRecord("k", "v") })
	c.Stop(1)
	c.Stop(2)
	c.Until("the lead to be lost", func() bool {
		p, err := c.Node(0).Partition("s", 0)
		if err != nil {
			return false
		}
		_, err = p.Bounds()
		return err != nil
	})
	if got, err := lookup(t, c.Node(0), "s", "k", cluster.OldestFirst); err == nil {
		t.Errorf("it finds %v", got)
	}
}
