package cluster_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
)

// Streams that are deleted between the plan of what is to move and the moves are no reason to end.
func TestANodeIsTakenOutWhileStreamsComeAndGo(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 4, "s")
	gone := (c.Controller() + 1) % 4
	id, ask := c.Node(gone).ID(), c.Node(c.Controller())
	var working sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		working.Go(func() {
			for at := 0; ; at++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprint("fleeting-", i, "-", at)
				made, err := ask.CreateStream(t.Context(), metadata.NewStream{Name: name})
				if err != nil {
					t.Errorf("making %s: %v", name, err)
					return
				}
				if err := ask.DeleteStream(t.Context(), made.ID); err != nil {
					t.Errorf("deleting %s: %v", name, err)
					return
				}
			}
		})
	}
	if err := takeOut(t.Context(), ask, moves.Removal{Node: id}); err != nil {
		t.Errorf("taking node %d out: %v", id, err)
	}
	close(stop)
	working.Wait()
}
