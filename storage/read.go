package storage

import (
	"fmt"
	"sort"
)

// Chunk is what Read found: whole batches of one partition, in order.
type Chunk struct {
	// Pieces are the batches' bytes, to be sent one after the other. They may be used until Release.
	Pieces [][]byte
	// Bytes is the length of all pieces.
	Bytes int
	// Next is the offset behind the last batch; the offset that was asked for if there is none.
	Next int64
}

// Release gives the memory back.
func (c *Chunk) Release() { c.Pieces = nil }

// Read returns whole batches from the one that contains offset on, about maxBytes of them, but at least one if there
// is any. Batches at or beyond the offset limit are left out; a negative limit is the committed end. At the end the
// chunk is empty. The errors are a *RangeError, a *DamageError, or that of the disk; batches before a damaged one are
// returned without an error.
func (j *Journal) Read(partition uint32, offset int64, maxBytes int, limit int64) (*Chunk, error) {
	r := reading{j: j, partition: partition, offset: offset, limit: limit, room: maxBytes}
	c := &Chunk{Next: offset}
	for {
		run, err := r.next()
		if err != nil {
			if c.Bytes > 0 {
				return c, nil
			}
			return nil, err
		}
		if run == nil {
			return c, nil
		}
		if err := run.read(c); err != nil {
			run.seg.release()
			if c.Bytes > 0 {
				return c, nil
			}
			return nil, err
		}
		run.seg.release()
		r.offset = c.Next
	}
}

// reading is a walk over a partition, segment by segment.
type reading struct {
	j         *Journal
	partition uint32
	offset    int64
	limit     int64
	room      int
	started   bool
}

// batchRun is a run of batches of one segment, to which it holds a reference.
type batchRun struct {
	seg     *segment
	entries []entry // of the segment, as they were when the batches were found
	locs    []loc
	next    int64 // offset behind the last
}

// next finds the batches to read next, or nil when there are no more or enough.
func (r *reading) next() (*batchRun, error) {
	if r.started && r.room <= 0 {
		return nil, nil
	}
	visible := r.j.visible()
	s, locs, entries, open, err := r.span(visible)
	if s == nil || err != nil {
		return nil, err
	}
	seg := s.seg
	if !open {
		t, err := r.j.tableOf(seg)
		if err != nil {
			seg.release()
			return nil, err
		}
		locs = s.locsOf(t)
	}
	run := r.choose(seg, locs, s.next, visible)
	if run == nil {
		seg.release()
		return nil, nil
	}
	run.entries = entries
	return run, nil
}

// span finds the span that holds the offset and takes a reference to its segment. Of the open segment the batch index is
// returned too.
func (r *reading) span(visible uint64) (_ *span, locs []loc, entries []entry, open bool, err error) {
	j := r.j
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.index.segs == nil {
		return nil, nil, nil, false, ErrClosed
	}
	p := j.index.parts[r.partition]
	if p == nil {
		p = &partition{}
	}
	end := p.visibleEnd(visible)
	if start := min(p.lowest(), end); !r.started && (r.offset < start || r.offset > end) {
		return nil, nil, nil, false, &RangeError{Partition: r.partition, Offset: r.offset, Start: start, End: end}
	}
	if r.limit < 0 || r.limit > end {
		r.limit = end
	}
	i := p.spanOf(r.offset)
	if r.offset >= r.limit || i == len(p.spans) {
		return nil, nil, nil, false, nil
	}
	s := p.spans[i]
	if s.first > r.offset && r.started { // trimmed while we were reading
		return nil, nil, nil, false, nil
	}
	s.seg.acquire()
	open = s.seg == j.index.segs[len(j.index.segs)-1]
	return &s, p.open.locs, s.seg.entries, open, nil
}

// choose takes batches from the one with the offset on, as many as there is room for.
func (r *reading) choose(seg *segment, locs []loc, next int64, visible uint64) *batchRun {
	first := sort.Search(len(locs), func(i int) bool { return locs[i].offset > r.offset }) - 1
	if first < 0 {
		return nil
	}
	n := first
	for n < len(locs) && locs[n].offset < r.limit && seg.base+uint64(locs[n].rel) < visible {
		size := int(locs[n].length)
		if r.started && r.room < size {
			r.room = 0
			break
		}
		r.room -= size
		r.started = true
		n++
	}
	if n == first {
		return nil
	}
	run := &batchRun{seg: seg, locs: locs[first:n], next: next}
	if n < len(locs) {
		run.next = locs[n].offset
	}
	return run
}

// read reads and checks the run's batches into the chunk. Neighbours on disk are read at once.
func (r *batchRun) read(c *Chunk) error {
	total := 0
	for _, l := range r.locs {
		total += int(l.length)
	}
	buf := make([]byte, total)
	for i, at := 0, 0; i < len(r.locs); {
		k, n := i+1, int(r.locs[i].length)
		for k < len(r.locs) && r.locs[k].rel == r.locs[k-1].rel+r.locs[k-1].length {
			n += int(r.locs[k].length)
			k++
		}
		if err := readAll(r.seg.file, buf[at:at+n], int64(r.locs[i].rel)); err != nil {
			return fmt.Errorf("reading %s at %d: %w", r.seg.path, r.locs[i].rel, err)
		}
		i, at = k, at+n
	}
	at := 0
	for i, l := range r.locs {
		if err := r.check(buf[at:at+int(l.length)], l); err != nil {
			if at > 0 {
				c.add(buf[:at], l.offset)
			}
			return err
		}
		at += int(l.length)
		if i == len(r.locs)-1 {
			c.add(buf, r.next)
		}
	}
	return nil
}

func (c *Chunk) add(piece []byte, next int64) {
	c.Pieces = append(c.Pieces, piece)
	c.Bytes += len(piece)
	c.Next = next
}

// check compares a batch's bytes with the index and its own checksum.
func (r *batchRun) check(data []byte, l loc) error {
	h := parseHeader(data)
	d := dirEntry{length: l.length, baseOffset: l.offset, records: uint32(h.Records), crc: h.CRC, maxTimestamp: h.MaxTimestamp}
	reason := checkStored(data, d, uint64(entryAround(r.entries, l.rel).term))
	if reason == "" {
		return nil
	}
	return r.seg.damage(int64(l.rel), int64(l.rel)+int64(l.length), fmt.Sprintf("batch at offset %d: %s", l.offset, reason))
}

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

// LastStable returns the offset below which every transaction is decided.
func (j *Journal) LastStable(partition uint32) int64 {
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	p := j.index.parts[partition]
	if p == nil {
		return 0
	}
	return p.txns.stable(p.visibleEnd(visible), visible)
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
func (j *Journal) EpochEnd(partition uint32, epoch int32) (int32, int64) {
	visible := j.visible()
	j.mu.RLock()
	x := &j.index
	p := x.parts[partition]
	if p == nil {
		p = &partition0
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
	return known, j.offsetAt(partition, position, end)
}

var partition0 partition

// offsetAt is the first offset of a partition at or behind a journal position.
func (j *Journal) offsetAt(id uint32, position uint64, end int64) int64 {
	j.mu.RLock()
	p := j.index.parts[id]
	var s *span
	var locs []loc
	open := false
	if p != nil {
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
