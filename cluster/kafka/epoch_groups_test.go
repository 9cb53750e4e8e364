package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
	"github.com/daybook-data/daybook/cluster/metadata"
)

func joining() membership.Join {
	return membership.Join{
		ClientID: "c", Session: time.Minute, Rebalance: time.Minute, Type: "consumer",
		Protocols: []membership.Protocol{{Name: "range"}},
	}
}

// What a coordinator knows of members is worth nothing once another one was elected, be
// it the same node: in between members may have joined elsewhere.
func TestMembershipsOfAnotherEpochAreVoid(t *testing.T) {
	c := newGroupCoordinator(0, nil)
	defer c.close()
	g, err := c.get(3, "g")
	if err != nil {
		t.Fatal(err)
	}
	if j := g.Join(t.Context(), joining()); j.Err != nil {
		t.Fatal(j.Err)
	}
	waiting := make(chan membership.Joined, 1)
	go func() { waiting <- g.Join(t.Context(), joining()) }() // until the first member joins again
	for deadline := time.Now().Add(30 * time.Second); len(g.Describe().Members) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second member does not join")
		}
	}
	c.enter(5, true)
	if j := <-waiting; !errors.Is(j.Err, membership.ErrClosed) {
		t.Errorf("who waited got %v, want ErrClosed", j.Err)
	}
	if _, ok := c.find(5, "g"); ok {
		t.Error("the group has members in the next epoch")
	}
	if _, err := c.get(3, "g"); !errors.Is(err, metadata.ErrNotCoordinator) {
		t.Errorf("a request of the former epoch: %v, want ErrNotCoordinator", err)
	}
	if next, err := c.get(5, "g"); err != nil || next == g {
		t.Errorf("the next epoch has the same group, %v", err)
	}
	if _, ok := c.find(3, "g"); ok {
		t.Error("a request of the former epoch found the group of the next one")
	}
	c.enter(5, false) // deposed
	if _, ok := c.find(5, "g"); ok {
		t.Error("a node that was deposed keeps its groups")
	}
}
