package storage

import "sort"

// Bounds returns the first offset that can be read and the one behind the last committed record.
func (j *Journal) Bounds(id uint32) (start, end int64) {
	j.ends(id, func(p *partition, _ uint64, visibleEnd int64) {
		start, end = min(p.lowest(), visibleEnd), visibleEnd
	})
	return start, end
}

// ends calls f with a partition, the journal position up to which it may be read, and the offset behind the last batch
// before that. f runs under mu.
func (j *Journal) ends(id uint32, f func(p *partition, visible uint64, end int64)) {
	for {
		j.mu.RLock()
		visible := j.visible()
		p := j.index.parts[id]
		if p == nil {
			p = &partition{}
		}
		end, lacks := p.exactEnd(visible)
		if lacks == nil {
			f(p, visible, end)
			j.mu.RUnlock()
			return
		}
		lacks.acquire()
		j.mu.RUnlock()
		j.keepEdge(lacks)
	}
}

// keepEdge puts the batch index of a sealed segment that is committed only in part into memory, where it stays until
// another segment is that. Without it, where a partition ends would depend on what happens to be in memory. If it cannot
// be read nothing of the segment is shown before it is committed as a whole. It takes the caller's reference over.
func (j *Journal) keepEdge(seg *segment) {
	defer seg.release()
	t, err := j.tableOf(seg)
	if err != nil {
		t = nil
		j.o.Logger.Warn("the index of a segment cannot be read: what is committed of it is shown when all of it is", "file", seg.path, "error", err)
	}
	seg.edge.Store(&edge{table: t})
	if old := j.edge.Swap(seg); old != nil && old != seg {
		old.edge.Store(nil)
	}
}

// loadEdge is keepEdge for the segment in which what is visible ends, if it is sealed.
func (j *Journal) loadEdge() {
	visible := j.visible()
	j.mu.RLock()
	segs := j.index.segs
	n := sort.Search(len(segs), func(i int) bool { return segs[i].end() >= visible })
	if n >= len(segs)-1 || segs[n].end() == visible || segs[n].base >= visible || segs[n].edge.Load() != nil {
		j.mu.RUnlock()
		return
	}
	seg := segs[n]
	seg.acquire()
	j.mu.RUnlock()
	j.keepEdge(seg)
}

// LastStable returns the offset below which every transaction is decided. It is never below the start, though an open
// transaction's first records may be gone.
func (j *Journal) LastStable(id uint32) (stable int64) {
	j.ends(id, func(p *partition, visible uint64, end int64) {
		stable = max(p.txns.stable(end, visible), min(p.lowest(), end))
	})
	return stable
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
// journal knows, and the offset behind the last record that was appended under it or an older one. If everything left is
// newer it answers, like Apache Kafka, the asked one and the start: a reader that stands there has missed nothing, and one
// that is told of no such epoch would start anew. It returns -1, -1 for epochs that there never are.
func (j *Journal) EpochEnd(id uint32, epoch int32) (int32, int64) {
	if epoch < 0 {
		return -1, -1
	}
	known, position, seen, start, end := int32(-1), uint64(0), uint64(0), int64(0), int64(0)
	j.ends(id, func(p *partition, visible uint64, e int64) {
		known, position = j.index.reach(epoch, visible)
		seen, start, end = visible, min(p.lowest(), e), e
	})
	if known < 0 {
		return epoch, start
	}
	if position >= seen {
		return known, end
	}
	return known, j.offsetAt(id, position, end)
}

// reach is the largest epoch up to the asked one that the log knows, -1 if none, and the position of the first entry above
// it, or else visible. Terms never fall along the log.
func (x *index) reach(epoch int32, visible uint64) (known int32, position uint64) {
	known, position = -1, visible
	if x.front.index > 0 && int32(x.front.term) <= epoch {
		known = int32(x.front.term)
	}
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
	return known, position
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
