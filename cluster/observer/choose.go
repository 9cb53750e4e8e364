package observer

import "cmp"

// candidate is an upstream that a journal could be pulled from.
type candidate struct {
	position uint64 // up to where it has the journal
	given    bool   // it is among Observe.Upstreams
	leads    bool   // it leads the journal's group
	current  bool   // the journal is pulled from it now
}

// choose returns the best of the candidates, which come in their order of preference; -1 if there is none. mark is what one
// of them had some time ago: who does not have that yet lags behind. Followers come before the leader, which has
// enough to do, and what serves stays.
func choose(all []candidate, mark uint64) int {
	best := -1
	for i := range all {
		if best < 0 || all[i].compare(&all[best], mark) < 0 {
			best = i
		}
	}
	return best
}

// compare is negative if c is better than d.
func (c *candidate) compare(d *candidate, mark uint64) int {
	return cmp.Or(
		first(c.position >= mark, d.position >= mark),
		first(c.given, d.given),
		first(!c.leads, !d.leads),
		first(c.current, d.current),
	)
}

// first orders what has a property before what has not.
func first(c, d bool) int {
	switch {
	case c == d:
		return 0
	case c:
		return -1
	}
	return 1
}
