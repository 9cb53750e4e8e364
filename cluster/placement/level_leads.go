package placement

import (
	"cmp"
	"slices"
)

// levelLeads chooses which replica of each journal should lead it, so that no node should lead two more than another one
// that could: each change is along a shortest way, and all of its steps concern journals of their own.
func (b *board) levelLeads() {
	for _, replicas := range b.at {
		if len(replicas) > 0 {
			b.leads[replicas[0]]++
		}
	}
	for changed := true; changed; {
		changed = false
		from := slices.Clone(b.ids)
		slices.SortStableFunc(from, func(x, y int32) int { return cmp.Compare(b.leads[y], b.leads[x]) })
		for _, x := range from {
			if changed = b.shareLeads(x); changed {
				break
			}
		}
	}
}

func (b *board) shareLeads(x int32) bool {
	led := func(u, v int32) int {
		return slices.IndexFunc(b.at, func(r []int32) bool { return len(r) > 0 && r[0] == u && slices.Contains(r, v) })
	}
	way := shortest(b.ids, x, func(y int32) bool { return b.leads[x]-b.leads[y] >= 2 }, func(y int32) int { return b.leads[y] }, func(u, v int32) bool { return u != v && led(u, v) >= 0 })
	for i := 1; i < len(way); i++ {
		u, v := way[i-1], way[i]
		replicas := b.at[led(u, v)]
		k := slices.Index(replicas, v)
		replicas[0], replicas[k] = replicas[k], replicas[0]
	}
	if len(way) > 0 {
		b.leads[way[0]]--
		b.leads[way[len(way)-1]]++
	}
	return len(way) > 0
}

// shortest returns the way from a node to the nearest one that will do, of several the one with the least weight; nil if
// there is none.
func shortest(ids []int32, from int32, will func(int32) bool, weight func(int32) int, step func(u, v int32) bool) []int32 {
	before := map[int32]int32{from: from}
	for now := []int32{from}; len(now) > 0; {
		var next []int32
		for _, u := range now {
			for _, v := range ids {
				if _, seen := before[v]; !seen && step(u, v) {
					before[v] = u
					next = append(next, v)
				}
			}
		}
		ends := slices.DeleteFunc(slices.Clone(next), func(id int32) bool { return !will(id) })
		if len(ends) > 0 {
			at := slices.MinFunc(ends, func(x, y int32) int { return cmp.Or(cmp.Compare(weight(x), weight(y)), cmp.Compare(x, y)) })
			way := []int32{at}
			for at != from {
				at = before[at]
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		now = next
	}
	return nil
}
