package storage

import "sort"

// Bounds returns the first offset that can be read and the one behind the last committed record.
func (j *Journal) Bounds(partition uint32) (start, end int64) {
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	p := j.index.parts[partition]
	if p == nil {
		return 0, 0
	}
	end = p.visibleEnd(visible)
	return min(p.lowest(), end), end
}

// LastStable returns the offset below which every transaction is decided. It is never below the start, though an open
// transaction's first records may be gone.
func (j *Journal) LastStable(partition uint32) int64 {
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	p := j.index.parts[partition]
	if p == nil {
		return 0
	}
	end := p.visibleEnd(visible)
	return max(p.txns.stable(end, visible), min(p.lowest(), end))
}

// Aborted returns the aborted transactions that have records in [from, to), in the order of their markers.
func (j *Journal) Aborted(partition uint32, from, to int64) []Aborted {
	j.mu.RLock()
	defer j.mu.RUnlock()
	p := j.index.parts[partition]
	if p == nil {
		return nil
	}
	all := p.txns.aborted
	var found []Aborted
	for _, a := range all[sort.Search(len(all), func(i int) bool { return all[i].Last >= from }):] {
		if a.First < to {
			found = append(found, a)
		}
	}
	return found
}

// EpochEnd answers how far a leader epoch reaches in a partition: the largest epoch up to the asked one that the
// journal knows, and the offset behind the last record that was appended under it or an older one. It returns -1, -1
// if everything left is newer.
func (j *Journal) EpochEnd(id uint32, epoch int32) (int32, int64) {
	visible := j.visible()
	j.mu.RLock()
	x := &j.index
	p := x.parts[id]
	if p == nil {
		p = &partition{}
	}
	end := p.visibleEnd(visible)
	known := int32(-1)
	if x.front.index > 0 && int32(x.front.term) <= epoch {
		known = int32(x.front.term)
	}
	// Terms never fall along the log: find the first entry above the epoch.
	var position uint64 = visible
	for _, s := range x.segs {
		n := sort.Search(len(s.entries), func(i int) bool { return int64(s.entries[i].term) > int64(epoch) })
		if n > 0 {
			known = int32(s.entries[n-1].term)
		}
		if n < len(s.entries) {
			position = min(position, s.base+uint64(s.entries[n].rel))
			break
		}
	}
	j.mu.RUnlock()
	if known < 0 {
		return -1, -1
	}
	if position >= visible {
		return known, end
	}
	return known, j.offsetAt(id, position, end)
}

// offsetAt is the first offset of a partition at or behind a journal position.
func (j *Journal) offsetAt(id uint32, position uint64, end int64) int64 {
	j.mu.RLock()
	p := j.index.parts[id]
	var s *span
	var locs []loc
	open := false
	if p != nil && len(j.index.segs) > 0 {
		i := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].seg.end() > position })
		if i < len(p.spans) {
			copied := p.spans[i]
			s, open = &copied, copied.seg == j.index.segs[len(j.index.segs)-1]
			s.seg.acquire()
			locs = p.open.locs
		}
	}
	j.mu.RUnlock()
	if s == nil {
		return end
	}
	defer s.seg.release()
	if !open {
		t, err := j.tableOf(s.seg)
		if err != nil {
			return min(end, s.first) // too low is safe: a client that truncates reads records again
		}
		locs = s.locsOf(t)
	}
	n := sort.Search(len(locs), func(i int) bool { return s.seg.base+uint64(locs[i].rel) >= position })
	if n == len(locs) {
		return min(end, s.next)
	}
	return min(end, locs[n].offset)
}
