package cluster_test

import (
	"strings"
	"testing"
)

// A node that no leader reaches, as most are gone, says so; when they are back it serves.
func TestANodeWithoutAMajoritySaysSo(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	wantReplica(t, c, 2, "s", fill(c, "s", "before", 1))
	for i, n := range c.Nodes() {
		if err := n.Serving(); err != nil {
			t.Errorf("node %d of a cluster in order: %v", i, err)
		}
	}
	for i := range 2 {
		c.Stop(i)
	}
	c.Until("the node that is left to say that it hears nobody", func() bool {
		err := c.Node(2).Serving()
		return err != nil && strings.Contains(err.Error(), "the metadata has heard no leader") && strings.Contains(err.Error(), "that hear no leader: s/0")
	})
	for i := range 2 {
		c.Begin(i)
	}
	c.Until("all to serve again", func() bool {
		for _, n := range c.Nodes() {
			if n.Serving() != nil {
				return false
			}
		}
		return true
	})
}
