package reorder

// A sourceID is an index into the table of sources. It is reused after the source
// was forgotten.
type sourceID int32

// A source is a producer inside a partition, or the partition itself.
type source struct {
	name      string
	partition Partition
	own       bool // the partition itself
	free      bool // forgotten; the entry can be reused
	// assigned: live only because its partition was assigned; nothing plausible came
	// yet, and it leaves as soon as a named producer of the partition is heard of.
	assigned bool

	max       int64 // M: the greatest event time accepted, MinTime before the first
	redo      int64 // OrderSource, while re-reading: the greatest order time taken back
	lastStamp int64 // J of the last plausible record
	at        int32 // index in the live heap, or none when idle

	late, clamped, quarantined uint64
	forced                     uint64 // times it held the watermark when that was forced
	maxLateness, maxDisorder   int64
}

// liveHeap is a binary heap of the live sources by M, so that the one that holds
// the watermark is at the top.
type liveHeap struct {
	ids []sourceID
	all []source // the table the ids point into
	// rank breaks ties, so that the source that is named as holding the watermark
	// does not depend on history.
	rank []int32
}

func (h *liveHeap) less(a, b sourceID) bool {
	x, y := h.all[a].max, h.all[b].max
	return x < y || x == y && h.rank[a] < h.rank[b]
}

func (h *liveHeap) set(i int, id sourceID) {
	h.ids[i] = id
	h.all[id].at = int32(i)
}

func (h *liveHeap) push(id sourceID) {
	h.ids = append(h.ids, id)
	h.up(len(h.ids)-1, id)
}

func (h *liveHeap) remove(id sourceID) {
	i := int(h.all[id].at)
	h.all[id].at = none
	n := len(h.ids) - 1
	last := h.ids[n]
	h.ids = h.ids[:n]
	if i == n {
		return
	}
	if i > 0 && h.less(last, h.ids[(i-1)/2]) {
		h.up(i, last)
	} else {
		h.down(i, last)
	}
}

// raised restores the order after the M of a live source rose.
func (h *liveHeap) raised(id sourceID) {
	if len(h.ids) > 1 {
		h.down(int(h.all[id].at), id)
	}
}

func (h *liveHeap) up(i int, id sourceID) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(id, h.ids[parent]) {
			break
		}
		h.set(i, h.ids[parent])
		i = parent
	}
	h.set(i, id)
}

func (h *liveHeap) down(i int, id sourceID) {
	n := len(h.ids)
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h.less(h.ids[child+1], h.ids[child]) {
			child++
		}
		if !h.less(h.ids[child], id) {
			break
		}
		h.set(i, h.ids[child])
		i = child
	}
	h.set(i, id)
}
