package reorder

// A key stands for an item in the slab of a keyHeap.
type key struct {
	time, position int64
	source         sourceID
	at             int32
}

func (k *key) before(o *key, rank []int32) bool {
	if k.time != o.time {
		return k.time < o.time
	}
	if k.source != o.source {
		return rank[k.source] < rank[o.source]
	}
	return k.position < o.position
}

// A keyHeap is a 4-ary heap of keys over a slab of items, for the few records that
// lie outside the ring. Moving 24-byte keys costs less than moving items.
type keyHeap[P any] struct {
	keys []key
	slab []Item[P]
	free int32 // head of the free list through Item.Position, or none
}

func (h *keyHeap[P]) len() int  { return len(h.keys) }
func (h *keyHeap[P]) top() *key { return &h.keys[0] }

func (h *keyHeap[P]) push(it *Item[P], rank []int32) {
	at := h.free
	if at != none {
		h.free = int32(h.slab[at].Position)
		h.slab[at] = *it
	} else {
		at = int32(len(h.slab))
		h.slab = append(h.slab, *it)
	}
	h.keys = append(h.keys, key{it.Time, it.Position, it.source, at})
	i := len(h.keys) - 1
	k := h.keys[i]
	for i > 0 {
		up := (i - 1) / 4
		if !k.before(&h.keys[up], rank) {
			break
		}
		h.keys[i] = h.keys[up]
		i = up
	}
	h.keys[i] = k
}

// pop moves the lowest item to out.
func (h *keyHeap[P]) pop(out *Item[P], rank []int32) {
	at := h.keys[0].at
	*out = h.slab[at]
	h.slab[at] = Item[P]{Position: int64(h.free)}
	h.free = at
	n := len(h.keys) - 1
	k := h.keys[n]
	h.keys = h.keys[:n]
	if n == 0 {
		h.reset()
		return
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if h.keys[c].before(&h.keys[least], rank) {
				least = c
			}
		}
		if !h.keys[least].before(&k, rank) {
			break
		}
		h.keys[i] = h.keys[least]
		i = least
	}
	h.keys[i] = k
}

// reset gives a large slab back once nothing is in it.
func (h *keyHeap[P]) reset() {
	const keep = 1 << 16
	if cap(h.slab) > keep {
		h.keys, h.slab, h.free = nil, nil, none
	}
}

// countBefore returns how many items of a sorted slice come before k.
func countBefore[P any](items []Item[P], k *key, rank []int32) int {
	lo, hi := 0, len(items)
	for lo < hi {
		mid := (lo + hi) / 2
		it := &items[mid]
		ik := key{it.Time, it.Position, it.source, 0}
		if ik.before(k, rank) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
