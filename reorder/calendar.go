package reorder

import "math/bits"

const (
	ringLen  = 4096
	ringMask = ringLen - 1
	none     = int32(-1)
)

// A slot is a chain of chunks with the records of one stretch of order time. It
// remembers its last record, so that adding one touches no other.
type slot struct {
	head, tail int32
	n          int32
	source     sourceID // of the last record
	time       int64    // of the last record
	unsorted   bool
}

// A calendar holds records and gives them back in the total order (C2). It knows
// no watermark: the caller says up to where to release.
//
// The records lie in three places. The ring holds slots base .. base+ringLen-1.
// The heap holds keys of what lies outside the ring, on either side. The front is
// the sorted rest of the slot that was opened last; all of it is below base.
//
// Invariant: base never falls below the slot after the last one opened, so no
// record joins the ring behind what was already handed out.
type calendar[P any] struct {
	bits uint
	rank []int32 // by sourceID: the place of its name in the order of names

	ring  [ringLen]slot
	used  [ringLen / 64]uint64 // bit set: the slot is not empty
	base  int64
	floor int64 // the slot after the last one opened
	inUse int   // slots of the ring that are not empty

	pool chunkPool[P]
	far  keyHeap[P]
	sort slotSorter[P]

	front  []Item[P] // sorted, handed out from the left
	rest   int32     // chunk that continues front, or none
	left   int32     // items in rest and the chunks behind it
	inside int32     // chunk that front lies in, or none
	gone   int32     // chunk whose items the caller may still be reading, or none
	single [1]Item[P]
}

// init makes c empty. scrub says that payloads hold pointers and must be cleared
// when they leave.
func (c *calendar[P]) init(bits uint, scrub bool) {
	*c = calendar[P]{bits: bits, rank: c.rank, rest: none, inside: none, gone: none}
	c.base, c.floor = MinTime>>bits, MinTime>>bits
	c.pool.free, c.pool.scrub = none, scrub
	c.far.free = none
	c.sort.scrub = scrub
}

// add takes a copy of it.
func (c *calendar[P]) add(it *Item[P]) {
	if place := c.place(it.Time, it.source); place != nil {
		*place = *it
		return
	}
	c.far.push(it, c.rank)
}

// place returns where in the ring to write the record that is added, or nil if it
// belongs in the heap. Within a source, positions rise from call to call.
func (c *calendar[P]) place(time int64, source sourceID) *Item[P] {
	s := time >> c.bits
	if uint64(s-c.base) >= ringLen && !c.rebase(s) {
		return nil
	}
	sl := &c.ring[s&ringMask]
	if sl.n == 0 {
		c.used[(s&ringMask)>>6] |= 1 << (s & 63)
		c.inUse++
	}
	return c.link(sl, time, source)
}

// rebase moves an empty ring so that it covers slot s, with room below it for
// records that are older but come later.
func (c *calendar[P]) rebase(s int64) bool {
	if c.inUse > 0 || s < c.floor {
		return false
	}
	c.base = max(c.floor, s-2*liveSlots)
	return true
}

// link makes room for one more record at the end of the chain.
func (c *calendar[P]) link(sl *slot, time int64, source sourceID) *Item[P] {
	at := sl.n & (chunkLen - 1)
	switch {
	case sl.n == 0:
		sl.head = c.pool.get()
		sl.tail, sl.unsorted = sl.head, false
	case time <= sl.time && source != sl.source || time < sl.time:
		sl.unsorted = sl.unsorted || time < sl.time || c.rank[source] < c.rank[sl.source]
		fallthrough
	default:
		if at == 0 {
			tail := c.pool.get()
			c.pool.at(sl.tail).next = tail
			sl.tail = tail
		}
	}
	sl.time, sl.source = time, source
	sl.n++
	return &c.pool.at(sl.tail).items[at]
}

// next returns the next records with order time below bound, in order, or nil.
// They are valid until the next call of any method. Each record is returned once.
func (c *calendar[P]) next(bound int64) []Item[P] {
	c.recycle()
	for len(c.front) == 0 {
		if c.rest != none {
			c.enter(c.rest)
		} else if !c.open(bound) {
			return nil
		}
	}
	return c.fromFront(bound)
}

// lowest returns the smallest order time held.
func (c *calendar[P]) lowest() (int64, bool) {
	c.recycle()
	for len(c.front) == 0 {
		if c.rest != none {
			c.enter(c.rest)
		} else if !c.open(MaxTime) {
			return 0, false
		}
	}
	t := c.front[0].Time
	if c.far.len() > 0 {
		t = min(t, c.far.top().time)
	}
	return t, true
}

// fromFront hands out the head of the front: up to bound, and up to the first
// record of the heap that belongs in between.
func (c *calendar[P]) fromFront(bound int64) []Item[P] {
	n := len(c.front)
	if c.front[n-1].Time >= bound {
		n = countBelow(c.front, bound)
	}
	if c.far.len() > 0 {
		top := c.far.top()
		if top.time < bound && (n == 0 || top.time <= c.front[n-1].Time) {
			n = countBefore(c.front[:n], top, c.rank)
			if n == 0 {
				c.far.pop(&c.single[0], c.rank)
				return c.single[:]
			}
		}
	}
	if n == 0 {
		return nil
	}
	group := c.front[:n:n]
	c.front = c.front[n:]
	if len(c.front) == 0 {
		c.gone, c.inside = c.inside, none
	}
	return group
}

// recycle takes back what the last call handed out.
func (c *calendar[P]) recycle() {
	if c.gone != none {
		c.pool.put(c.gone)
		c.gone = none
	}
	if len(c.front) == 0 {
		c.sort.done()
	}
}

// enter makes a chunk the front.
func (c *calendar[P]) enter(id int32) {
	c.recycle()
	ch := c.pool.at(id)
	n := min(c.left, chunkLen)
	c.left -= n
	c.front, c.rest, c.inside = ch.items[:n], ch.next, id
}

// open makes the lowest slot that holds anything, and may hold something below
// bound, the front.
func (c *calendar[P]) open(bound int64) bool {
	last := (bound - 1) >> c.bits
	s, inRing := c.firstUsed()
	inFar := false
	if c.far.len() > 0 {
		if fs := c.far.top().time >> c.bits; !inRing || fs <= s {
			inFar, inRing, s = true, inRing && fs == s, fs
		}
	}
	if !inFar && !inRing || s > last {
		return false
	}
	sl := slot{head: none}
	if inRing {
		sl = c.detach(s)
	}
	if inFar {
		c.linkFar(&sl, (s+1)<<c.bits)
	}
	c.floor = max(c.floor, s+1)
	c.base = max(c.base, c.floor)
	if sl.unsorted {
		c.front, c.rest, c.inside = c.sort.run(&c.pool, sl, c.rank), none, none
	} else {
		c.left = sl.n
		c.enter(sl.head)
	}
	return true
}

// firstUsed finds the lowest slot of the ring that is not empty.
func (c *calendar[P]) firstUsed() (int64, bool) {
	if c.inUse == 0 {
		return 0, false
	}
	at := c.base & ringMask
	if word := c.used[at>>6] >> (at & 63); word != 0 {
		return c.base + int64(bits.TrailingZeros64(word)), true
	}
	for step := int64(1); ; step++ {
		i := (at>>6 + step) & (ringLen/64 - 1)
		if c.used[i] != 0 {
			bit := i<<6 + int64(bits.TrailingZeros64(c.used[i]))
			return c.base + (bit-at)&ringMask, true
		}
	}
}

// detach takes slot s out of the ring.
func (c *calendar[P]) detach(s int64) slot {
	at := s & ringMask
	sl := c.ring[at]
	c.ring[at] = slot{}
	c.used[at>>6] &^= 1 << (at & 63)
	c.inUse--
	return sl
}

// linkFar appends what the heap holds below end.
func (c *calendar[P]) linkFar(sl *slot, end int64) {
	sl.unsorted = sl.n > 0
	for c.far.len() > 0 && c.far.top().time < end {
		k := c.far.top()
		c.far.pop(c.link(sl, k.time, k.source), c.rank)
	}
}

// before is the total order (C2): order time, source name, partition name,
// position. A rank stands for both names.
func before[P any](a, b *Item[P], rank []int32) bool {
	if a.Time != b.Time {
		return a.Time < b.Time
	}
	if a.source != b.source {
		return rank[a.source] < rank[b.source]
	}
	return a.Position < b.Position
}

// countBelow returns how many items of a sorted slice are below bound.
func countBelow[P any](items []Item[P], bound int64) int {
	lo, hi := 0, len(items)
	for lo < hi {
		if mid := (lo + hi) / 2; items[mid].Time < bound {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
