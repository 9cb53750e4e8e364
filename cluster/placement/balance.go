package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Journal is one as it lies: the nodes that have it, the one that should lead it first.
type Journal struct {
	Replicas []int32
	// Count is how many it is to have; as many as it has if 0.
	Count int
}

// Change is a journal that should lie elsewhere.
type Change struct {
	// Journal is its place in the list that Balance was given.
	Journal  int
	From, To []int32
}

// Copies is how many copies have to be made for it: what it costs. A change of the preferred leader alone costs none.
func (c Change) Copies() (n int) {
	for _, id := range c.To {
		if !slices.Contains(c.From, id) {
			n++
		}
	}
	return n
}

// Balance returns what has to change so that every journal has as many replicas as it should, all on the given nodes and
// as many racks as can be, and the nodes have equally many replicas, and equally many to lead, as far as racks allow. It
// moves no more than that needs, and finds nothing to do where it was carried out. Replicas on nodes that are not given
// are replaced; where there are too few nodes the journal gets fewer replicas than it should, never fewer than it has on
// given nodes. The counts in nodes are not used.
func Balance(nodes []Node, journals []Journal) []Change {
	b := newBoard(nodes, journals)
	for j := range b.at {
		b.fit(j, journals[j].wanted())
	}
	for j := range b.at {
		b.spread(j)
	}
	b.level()
	b.levelLeads()
	var changes []Change
	for j, next := range b.at {
		if len(next) > 0 && !slices.Equal(next, journals[j].Replicas) {
			changes = append(changes, Change{Journal: j, From: journals[j].Replicas, To: next})
		}
	}
	return changes
}

// Resize returns what has to change so that every journal has as many replicas as it should, and nothing else.
func Resize(nodes []Node, journals []Journal) []Change {
	b := newBoard(nodes, journals)
	var changes []Change
	for j, old := range journals {
		if len(old.Replicas) == old.wanted() {
			continue
		}
		if b.fit(j, old.wanted()); len(b.at[j]) > 0 {
			changes = append(changes, Change{Journal: j, From: old.Replicas, To: b.at[j]})
		}
	}
	return changes
}

// Leave returns what has to change so that no journal has a replica on a node that is not given, and nothing else.
func Leave(nodes []Node, journals []Journal) []Change {
	b := newBoard(nodes, journals)
	var changes []Change
	for j, old := range journals {
		if !slices.ContainsFunc(old.Replicas, func(id int32) bool { return !b.has(id) }) {
			continue
		}
		if b.fit(j, old.wanted()); len(b.at[j]) > 0 {
			changes = append(changes, Change{Journal: j, From: old.Replicas, To: b.at[j]})
		}
	}
	return changes
}

func (j Journal) wanted() int {
	if j.Count > 0 {
		return j.Count
	}
	return len(j.Replicas)
}

// board is where journals are to lie while that is being worked out.
type board struct {
	rack  map[int32]string
	shut  map[int32]bool // closed
	ids   []int32        // of the nodes, in order
	load  map[int32]int
	leads map[int32]int
	at    [][]int32
}

// newBoard places the journals as they lie, without what is on nodes that are not there.
func newBoard(nodes []Node, journals []Journal) *board {
	b := &board{rack: map[int32]string{}, shut: map[int32]bool{}, load: map[int32]int{}, leads: map[int32]int{}}
	for _, n := range nodes {
		b.rack[n.ID], b.shut[n.ID] = n.Rack, n.Closed
	}
	b.ids = slices.Sorted(maps.Keys(b.rack))
	for _, j := range journals {
		b.at = append(b.at, slices.Clone(j.Replicas))
		for _, id := range j.Replicas {
			if b.has(id) {
				b.load[id]++
			}
		}
	}
	return b
}

func (b *board) has(id int32) bool { _, ok := b.rack[id]; return ok }

// racks counts a journal's replicas by rack.
func (b *board) racks(j int) map[string]int {
	n := map[string]int{}
	for _, id := range b.at[j] {
		if b.has(id) {
			n[b.rack[id]]++
		}
	}
	return n
}

// fit gives a journal as many replicas as it should have, on nodes that are there. A replica takes the place of the one
// that goes, so that what should lead goes on to.
func (b *board) fit(j, wanted int) {
	var gone []int
	for i, id := range b.at[j] {
		if !b.has(id) {
			gone = append(gone, i)
		}
	}
	for _, i := range gone {
		if len(b.at[j]) > wanted {
			break
		}
		if id, ok := b.best(j); ok {
			b.at[j][i] = id
			b.load[id]++
		}
	}
	b.at[j] = slices.DeleteFunc(b.at[j], func(id int32) bool { return !b.has(id) })
	for len(b.at[j]) < wanted {
		id, ok := b.best(j)
		if !ok {
			return
		}
		b.at[j] = append(b.at[j], id)
		b.load[id]++
	}
	for len(b.at[j]) > wanted {
		b.shed(j)
	}
}

// best is the node for one more replica of a journal.
func (b *board) best(j int) (id int32, ok bool) {
	racks := b.racks(j)
	free := slices.DeleteFunc(slices.Clone(b.ids), func(id int32) bool { return b.shut[id] || slices.Contains(b.at[j], id) })
	if len(free) == 0 {
		return 0, false
	}
	return slices.MinFunc(free, func(x, y int32) int {
		return cmp.Or(cmp.Compare(racks[b.rack[x]], racks[b.rack[y]]), cmp.Compare(b.load[x], b.load[y]), cmp.Compare(x, y))
	}), true
}

// shed takes the replica away that is missed least, the preferred leader's last.
func (b *board) shed(j int) {
	racks := b.racks(j)
	first := b.at[j][0]
	isFirst := func(id int32) int {
		if id == first {
			return 1
		}
		return 0
	}
	id := slices.MaxFunc(b.at[j], func(x, y int32) int {
		return cmp.Or(cmp.Compare(isFirst(y), isFirst(x)), cmp.Compare(racks[b.rack[x]], racks[b.rack[y]]), cmp.Compare(b.load[x], b.load[y]), cmp.Compare(x, y))
	})
	b.at[j] = slices.DeleteFunc(b.at[j], func(r int32) bool { return r == id })
	b.load[id]--
}

// spread moves replicas of a journal from racks that have two more of them than another one could have.
func (b *board) spread(j int) {
	for {
		racks := b.racks(j)
		from, to, found := int32(0), int32(0), false
		for _, x := range b.at[j] {
			for _, y := range b.ids {
				if b.shut[y] || slices.Contains(b.at[j], y) || racks[b.rack[x]]-racks[b.rack[y]] < 2 {
					continue
				}
				if !found || cmp.Or(cmp.Compare(b.load[to], b.load[y]), cmp.Compare(b.load[x], b.load[from])) > 0 {
					from, to, found = x, y, true
				}
			}
		}
		if !found {
			return
		}
		b.move(j, from, to)
	}
}

func (b *board) move(j int, from, to int32) {
	b.at[j][slices.Index(b.at[j], from)] = to
	b.load[from]--
	b.load[to]++
}

// mayMove says whether a replica of a journal can go from one node to another with as many racks as before.
func (b *board) mayMove(j int, from, to int32) bool {
	if b.shut[to] || !slices.Contains(b.at[j], from) || slices.Contains(b.at[j], to) {
		return false
	}
	racks := b.racks(j)
	return b.rack[from] == b.rack[to] || racks[b.rack[to]] < racks[b.rack[from]]
}

// level moves replicas from nodes that have two more than others, directly or by way of others, until none has.
func (b *board) level() {
	for {
		moved := false
		from := slices.Clone(b.ids)
		slices.SortStableFunc(from, func(x, y int32) int { return cmp.Compare(b.load[y], b.load[x]) })
		for _, x := range from {
			if moved = b.relieve(x); moved {
				break
			}
		}
		if !moved {
			return
		}
	}
}

// relieve takes one replica from a node, if another node has two less: along the shortest way of single moves.
func (b *board) relieve(x int32) bool {
	edge := func(u, v int32) (int, bool) {
		for j := range b.at {
			if b.mayMove(j, u, v) {
				return j, true
			}
		}
		return 0, false
	}
	way := shortest(b.ids, x, func(y int32) bool { return b.load[x]-b.load[y] >= 2 }, func(y int32) int { return b.load[y] }, func(u, v int32) bool { _, ok := edge(u, v); return ok })
	// From the end, so that each step makes room for the one before it. A step may have become impossible, as two can
	// concern one journal; what was moved by then has levelled nodes too, or is taken back.
	var done []func()
	for i := len(way) - 1; i > 0; i-- {
		u, v := way[i-1], way[i]
		j, ok := edge(u, v)
		if !ok {
			for _, undo := range slices.Backward(done) {
				undo()
			}
			return false
		}
		b.move(j, u, v)
		done = append(done, func() { b.move(j, v, u) })
	}
	return len(way) > 0
}
