package reorder

import (
	"math/bits"
	"slices"
)

const (
	smallBucket = 16
	keepScratch = 1 << 16 // items; a larger scratch is given back when rarely used
)

// A slotSorter sorts one slot at a time into a scratch of its own.
//
// One stable counting pass spreads the records over about as many buckets as
// there are records, by time; buckets are then a record or two and an insertion
// sort over the whole finishes. A bucket with many records has one stamp in it
// (seconds, milliseconds): there a stable pass by source name is enough, because
// inside a source the positions already rise.
type slotSorter[P any] struct {
	scratch []Item[P]
	aux     []Item[P]
	counts  []uint32 // by bucket
	starts  []uint32 // by rank
	n       int      // items of scratch in use
	idle    int      // slots sorted since a large scratch was needed
	scrub   bool
}

// run frees the chain and returns its items in order.
func (s *slotSorter[P]) run(pool *chunkPool[P], sl slot, rank []int32) []Item[P] {
	n := int(sl.n)
	out := s.grow(n)
	lo, hi := timeRange(pool, sl)
	shift := 0
	if width := bits.Len64(uint64(hi - lo)); width > bits.Len(uint(n)) {
		shift = width - bits.Len(uint(n))
	}
	counts := s.zeroCounts(int(uint64(hi-lo)>>shift) + 1)
	for id, left := sl.head, n; id != none; left -= chunkLen {
		ch := pool.at(id)
		for i := range ch.items[:min(left, chunkLen)] {
			counts[uint64(ch.items[i].Time-lo)>>shift]++
		}
		id = ch.next
	}
	largest := offsets(counts)
	for id, left := sl.head, n; id != none; left -= chunkLen {
		ch := pool.at(id)
		for i := range ch.items[:min(left, chunkLen)] {
			it := &ch.items[i]
			b := uint64(it.Time-lo) >> shift
			out[counts[b]] = *it
			counts[b]++
		}
		next := ch.next
		pool.put(id)
		id = next
	}
	if largest <= smallBucket {
		insertionSort(out, rank)
		return out
	}
	start := uint32(0)
	for _, end := range counts { // each count is now the end of its bucket
		s.sortBucket(out[start:end], rank)
		start = end
	}
	return out
}

// done lets go of the payloads of the last run.
func (s *slotSorter[P]) done() {
	if s.n == 0 {
		return
	}
	if s.scrub {
		scrub(s.scratch[:s.n])
	}
	s.n = 0
}

func (s *slotSorter[P]) grow(n int) []Item[P] {
	if cap(s.scratch) > keepScratch {
		if s.idle++; n > cap(s.scratch)/4 {
			s.idle = 0
		} else if s.idle > liveSlots {
			s.scratch, s.aux, s.counts, s.idle = nil, nil, nil, 0
		}
	}
	if cap(s.scratch) < n {
		s.scratch = make([]Item[P], n+n/4)
	}
	s.n = n
	s.scratch = s.scratch[:cap(s.scratch)]
	return s.scratch[:n]
}

func (s *slotSorter[P]) zeroCounts(n int) []uint32 {
	if cap(s.counts) < n {
		s.counts = make([]uint32, n+n/4)
	}
	counts := s.counts[:n]
	clear(counts)
	return counts
}

// offsets turns counts into the start of each bucket and returns the largest count.
func offsets(counts []uint32) uint32 {
	var sum, largest uint32
	for i, n := range counts {
		counts[i] = sum
		sum += n
		largest = max(largest, n)
	}
	return largest
}

func timeRange[P any](pool *chunkPool[P], sl slot) (lo, hi int64) {
	lo, hi = MaxTime, MinTime
	for id, left := sl.head, int(sl.n); id != none; left -= chunkLen {
		ch := pool.at(id)
		for i := range ch.items[:min(left, chunkLen)] {
			t := ch.items[i].Time
			lo, hi = min(lo, t), max(hi, t)
		}
		id = ch.next
	}
	return lo, hi
}

func insertionSort[P any](items []Item[P], rank []int32) {
	for i := 1; i < len(items); i++ {
		if !before(&items[i], &items[i-1], rank) {
			continue
		}
		it := items[i]
		j := i
		for j > 0 && before(&it, &items[j-1], rank) {
			items[j] = items[j-1]
			j--
		}
		items[j] = it
	}
}

func (s *slotSorter[P]) sortBucket(items []Item[P], rank []int32) {
	if len(items) <= smallBucket {
		insertionSort(items, rank)
		return
	}
	if isSorted(items, rank) {
		return
	}
	if len(rank) <= 4*len(items) && sameTime(items) {
		s.spreadBySource(items, rank)
		if isSorted(items, rank) {
			return
		}
	}
	slices.SortFunc(items, func(a, b Item[P]) int {
		if before(&a, &b, rank) {
			return -1
		}
		return 1 // no two records are equal: (source, position) is an identity
	})
}

// spreadBySource is a stable counting sort by the rank of the source.
func (s *slotSorter[P]) spreadBySource(items []Item[P], rank []int32) {
	if cap(s.aux) < len(items) {
		s.aux = make([]Item[P], len(items)+len(items)/4)
	}
	aux := s.aux[:len(items)]
	copy(aux, items)
	if cap(s.starts) < len(rank) {
		s.starts = make([]uint32, len(rank)*2)
	}
	starts := s.starts[:len(rank)]
	clear(starts)
	for i := range aux {
		starts[rank[aux[i].source]]++
	}
	offsets(starts)
	for i := range aux {
		r := rank[aux[i].source]
		items[starts[r]] = aux[i]
		starts[r]++
	}
	if s.scrub {
		scrub(aux)
	}
}

func isSorted[P any](items []Item[P], rank []int32) bool {
	for i := 1; i < len(items); i++ {
		if before(&items[i], &items[i-1], rank) {
			return false
		}
	}
	return true
}

func sameTime[P any](items []Item[P]) bool {
	for i := range items {
		if items[i].Time != items[0].Time {
			return false
		}
	}
	return true
}
