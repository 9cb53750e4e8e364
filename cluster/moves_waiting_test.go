package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// A removal that has begun, and whose journal then loses most of its copies, says which journal it waits for, and for whom.
func TestAMoveThatWaitsSaysForWhom(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "pair", Replication: 2})
	must(t, err)
	c.Add()
	c.Add()
	untilVoters(t, c, 5)
	s, _ := c.Node(0).Meta().Stream("pair")
	has := metadata.NodesOf(s.ReplicasOf(0))
	var free []int32
	for id := int32(1); id <= 5; id++ {
		if id != has[0] && id != has[1] {
			free = append(free, id)
		}
	}
	down := slices.Sorted(slices.Values(has))
	ask := c.Node(c.Place(free[0]))
	for _, id := range has {
		c.Stop(c.Place(id))
	}
	c.Until("both copies to be down", func() bool { return !ask.Up(has[0]) && !ask.Up(has[1]) })
	must(t, ask.Moves().SetReplicas(t.Context(), s.ID, 0, free[1:3]))
	for what, waits := range map[string]func() []string{
		"status": func() []string { return statusOf(t, ask).Waits },
		"rebalance, dry": func() []string {
			p, err := ask.Moves().Resize(t.Context(), "s", 3, true)
			must(t, err)
			return p.Waits
		},
	} {
		c.Until(what+" to say it", func() bool {
			w := waits()
			return len(w) == 1 && strings.Contains(w[0], "journal 0 of stream pair waits") && strings.Contains(w[0], fmt.Sprint("start ", down))
		})
	}
}
