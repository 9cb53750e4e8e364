package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/cluster/placement"
)

// on makes nodes of one rack.
func on(ids ...int32) (nodes []placement.Node) {
	for _, id := range ids {
		nodes = append(nodes, placement.Node{ID: id})
	}
	return nodes
}

func lying(replicas ...[]int32) (journals []placement.Journal) {
	for _, r := range replicas {
		journals = append(journals, placement.Journal{Replicas: r})
	}
	return journals
}

func applied(journals []placement.Journal, changes []placement.Change) []placement.Journal {
	next := slices.Clone(journals)
	for _, c := range changes {
		next[c.Journal].Replicas = c.To
	}
	return next
}

func TestBalanceChangesNoMoreThanItNeeds(t *testing.T) {
	racks := []placement.Node{{ID: 1, Rack: "a"}, {ID: 2, Rack: "a"}, {ID: 3, Rack: "b"}, {ID: 4, Rack: "c"}}
	for _, c := range []struct {
		name     string
		nodes    []placement.Node
		journals []placement.Journal
		want     []placement.Change
	}{
		{"nothing to do", on(1, 2, 3), lying([]int32{1, 2, 3}, []int32{2, 3, 1}, []int32{3, 1, 2}), nil},
		{"no journals", on(1, 2, 3), nil, nil},
		{"no nodes", nil, lying([]int32{1}), nil},
		{"a node more", on(1, 2), lying([]int32{1}, []int32{1}), []placement.Change{{Journal: 0, From: []int32{1}, To: []int32{2}}}},
		{"only the leads", on(1, 2), lying([]int32{1, 2}, []int32{1, 2}), []placement.Change{{Journal: 0, From: []int32{1, 2}, To: []int32{2, 1}}}},
		{"a node that goes", on(1, 2, 3), lying([]int32{4, 1, 2}), []placement.Change{{Journal: 0, From: []int32{4, 1, 2}, To: []int32{3, 1, 2}}}},
		{"no room for all", on(1, 2), lying([]int32{4, 1, 2}), []placement.Change{{Journal: 0, From: []int32{4, 1, 2}, To: []int32{1, 2}}}},
		{"nothing is left", on(1, 2), lying([]int32{4}), []placement.Change{{Journal: 0, From: []int32{4}, To: []int32{1}}}},
		{"more replicas", on(1, 2, 3), []placement.Journal{{Replicas: []int32{2}, Count: 3}}, []placement.Change{{Journal: 0, From: []int32{2}, To: []int32{2, 1, 3}}}},
		{"fewer replicas", on(1, 2, 3), []placement.Journal{{Replicas: []int32{2, 1, 3}, Count: 1}}, []placement.Change{{Journal: 0, From: []int32{2, 1, 3}, To: []int32{2}}}},
		{"two in a rack", racks, lying([]int32{1, 2, 3}), []placement.Change{{Journal: 0, From: []int32{1, 2, 3}, To: []int32{4, 2, 3}}}},
		{"a rack that has to have two", racks[:3], lying([]int32{1, 2, 3}), nil},
	} {
		if diff := cmp.Diff(c.want, placement.Balance(c.nodes, c.journals)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLeaveTouchesOnlyWhatIsOnTheNode(t *testing.T) {
	got := placement.Leave(on(1, 2, 3, 4), lying([]int32{1, 2, 3}, []int32{5, 1, 2}, []int32{1, 2, 3}, []int32{1, 2, 3}))
	want := []placement.Change{{Journal: 1, From: []int32{5, 1, 2}, To: []int32{4, 1, 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// problem is a cluster that grew somehow: journals lie anyhow on some of the nodes, and on some that are gone.
type problem struct {
	nodes    []placement.Node
	journals []placement.Journal
	racks    int // each with as many nodes; 1: racks say nothing
}

func anyProblem(rng *rand.Rand) (p problem) {
	p.racks = 1 + rng.IntN(4)
	for i := range p.racks * (1 + rng.IntN(3)) {
		p.nodes = append(p.nodes, placement.Node{ID: int32(1 + i), Rack: fmt.Sprint("r", i%p.racks)})
	}
	known := len(p.nodes) + rng.IntN(3)
	for range rng.IntN(60) {
		order := rng.Perm(known)
		var replicas []int32
		for _, i := range order[:1+rng.IntN(min(known, 5))] {
			replicas = append(replicas, int32(1+i))
		}
		p.journals = append(p.journals, placement.Journal{Replicas: replicas})
	}
	return p
}

func TestBalanceHoldsItsRules(t *testing.T) {
	for seed := range uint64(3000) {
		p := anyProblem(rand.New(rand.NewPCG(seed, 1)))
		changes := placement.Balance(p.nodes, p.journals)
		after := applied(p.journals, changes)
		if err := p.check(after); err != nil {
			t.Fatalf("seed %d: %v\nnodes %v\nbefore %v\nafter %v", seed, err, p.nodes, p.journals, after)
		}
		if again := placement.Balance(p.nodes, after); len(again) > 0 {
			t.Fatalf("seed %d: a second time it changes %v", seed, again)
		}
	}
}

// check says which rule does not hold.
func (p problem) check(after []placement.Journal) error {
	rack := map[int32]string{}
	load := map[int32]int{}
	for _, n := range p.nodes {
		rack[n.ID], load[n.ID] = n.Rack, 0
	}
	for i, j := range after {
		if want := min(len(p.journals[i].Replicas), len(p.nodes)); len(j.Replicas) != want {
			return fmt.Errorf("journal %d has %d replicas, want %d", i, len(j.Replicas), want)
		}
		in := map[string]int{}
		for k, id := range j.Replicas {
			r, ok := rack[id]
			if !ok || slices.Contains(j.Replicas[:k], id) {
				return fmt.Errorf("journal %d lies on %v", i, j.Replicas)
			}
			in[r]++
			load[id]++
		}
		for r, n := range in {
			if most := (len(j.Replicas) + p.racks - 1) / p.racks; n > most {
				return fmt.Errorf("journal %d has %d replicas in rack %s, %d would do", i, n, r, most)
			}
		}
	}
	least, most := len(after), 0
	for _, n := range load {
		least, most = min(least, n), max(most, n)
	}
	if len(load) > 0 && most-least > 1 {
		return fmt.Errorf("the nodes have %v", load)
	}
	return nil
}

// A node that comes gets its share, and nothing else moves.
func TestANewNodeGetsItsShareAndNothingElseMoves(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 3 + rng.IntN(5)
		var nodes []placement.Node
		for i := range n {
			nodes = append(nodes, placement.Node{ID: int32(1 + i)})
		}
		var journals []placement.Journal
		for range rng.IntN(100) {
			journals = append(journals, placement.Journal{Replicas: placement.Pick(nodes, 3)})
		}
		journals = applied(journals, placement.Balance(nodes, journals))
		more := append(slices.Clone(nodes), placement.Node{ID: 99})
		copies := 0
		for _, c := range placement.Balance(more, journals) {
			copies += c.Copies()
			for _, id := range c.To {
				if !slices.Contains(c.From, id) && id != 99 {
					t.Fatalf("seed %d: a copy goes to node %d, which was there", seed, id)
				}
			}
		}
		if share := 3 * len(journals) / (n + 1); copies != share {
			t.Fatalf("seed %d: %d copies are made, the share of the new node is %d", seed, copies, share)
		}
	}
}

// Equally many are to be led by each where all nodes have everything.
func TestLeadsAreShared(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN(5)
		var ids []int32
		for i := range n {
			ids = append(ids, int32(1+i))
		}
		var journals []placement.Journal
		for range rng.IntN(50) {
			order := slices.Clone(ids)
			rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			journals = append(journals, placement.Journal{Replicas: order})
		}
		leads := make([]int, n)
		for _, j := range applied(journals, placement.Balance(on(ids...), journals)) {
			leads[j.Replicas[0]-1]++
		}
		if slices.Max(leads)-slices.Min(leads) > 1 {
			t.Fatalf("seed %d: nodes are to lead %v", seed, leads)
		}
	}
}
