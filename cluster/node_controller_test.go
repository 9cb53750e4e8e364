package cluster_test

import (
	"slices"
	"testing"

	"github.com/daybook-data/daybook/cluster/clustertest"
)

// A voter of the metadata that is gone is replaced by a node that is there, and so is the leader: whoever leads then knows
// since when it was missed.
func TestAVoterThatIsGoneIsReplaced(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 4)
	untilVoters(t, c, 3)
	voters := func() []int32 {
		s, err := c.Nodes()[0].Status(t.Context())
		if err != nil || s.Stale != "" {
			return nil
		}
		return s.Voters
	}
	var gone int
	c.Until("a leader among three voters", func() bool {
		gone = c.Controller()
		now := voters()
		return len(now) == 3 && slices.Contains(now, c.Node(gone).ID())
	})
	id := c.Node(gone).ID()
	c.Stop(gone)
	c.Until("another voter in the place of the one that led", func() bool {
		now := voters()
		return len(now) == 3 && !slices.Contains(now, id)
	})
}
