// Package placement decides which nodes get the replicas of a journal.
package placement

import (
	"cmp"
	"slices"
)

// Node is one that can get replicas.
type Node struct {
	ID   int32
	Rack string
	// Replicas and Leads are how many it has, and how many of these it is to lead.
	Replicas, Leads int
	// Closed says that it gets no further replicas. Those it has stay.
	Closed bool
	// Down says that it cannot be reached at present: it is taken where there are not enough others.
	Down bool
}

// Pick returns n nodes for a journal, the one that should lead it first, and counts them in the nodes. It spreads over
// racks first and then over the nodes that have least. It returns nil if there are fewer than n that are not
// closed.
func Pick(nodes []Node, n int) []int32 {
	if n < 1 || n > len(nodes) {
		return nil
	}
	var picked []*Node
	racks := map[string]int{}
	for len(picked) < n {
		var best *Node
		for i := range nodes {
			c := &nodes[i]
			if slices.Contains(picked, c) || c.Closed {
				continue
			}
			if best == nil || cmp.Or(boolean(c.Down, best.Down), cmp.Compare(racks[c.Rack], racks[best.Rack]), cmp.Compare(c.Replicas, best.Replicas), cmp.Compare(c.Leads, best.Leads), cmp.Compare(c.ID, best.ID)) < 0 {
				best = c
			}
		}
		if best == nil {
			return nil
		}
		racks[best.Rack]++
		best.Replicas++
		picked = append(picked, best)
	}
	slices.SortStableFunc(picked, func(a, b *Node) int {
		return cmp.Or(boolean(a.Down, b.Down), cmp.Compare(a.Leads, b.Leads), cmp.Compare(a.ID, b.ID))
	})
	picked[0].Leads++
	ids := make([]int32, n)
	for i, p := range picked {
		ids[i] = p.ID
	}
	return ids
}

// boolean compares two conditions; the one that does not hold comes first.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
