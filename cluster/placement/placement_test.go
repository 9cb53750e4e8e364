package placement_test

import (
	"testing"

	"github.com/daybook-data/daybook/cluster/placement"
)

func TestReplicasAreSpreadOverRacksAndNodes(t *testing.T) {
	nodes := []placement.Node{{ID: 1, Rack: "a"}, {ID: 2, Rack: "a"}, {ID: 3, Rack: "b"}, {ID: 4, Rack: "b"}, {ID: 5, Rack: "c"}}
	rack := map[int32]string{}
	for _, n := range nodes {
		rack[n.ID] = n.Rack
	}
	for range 20 {
		got := placement.Pick(nodes, 3)
		if len(got) != 3 || rack[got[0]] == rack[got[1]] || rack[got[1]] == rack[got[2]] || rack[got[0]] == rack[got[2]] {
			t.Fatalf("got %v, want one of each rack", got)
		}
	}
	leads := 0
	for _, n := range nodes {
		leads += n.Leads
		if n.Leads < 3 || n.Leads > 5 || n.Rack != "c" && n.Replicas != 10 {
			t.Errorf("node %d has %d replicas and leads %d of 20", n.ID, n.Replicas, n.Leads)
		}
	}
	if leads != 20 {
		t.Errorf("%d of 20 are led", leads)
	}
}

func TestMoreReplicasThanNodesAreRefused(t *testing.T) {
	if got := placement.Pick([]placement.Node{{ID: 1}}, 2); got != nil {
		t.Errorf("got %v", got)
	}
}
