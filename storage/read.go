package storage

import "sort"

// Read returns whole batches from the one that contains offset on, about maxBytes of them, but at least one if there
// is any. Batches at or beyond the offset limit are left out; a negative limit is the committed end. At the end the
// chunk is empty. The errors are a *RangeError, a *DamageError, or that of the disk; batches before a damaged one are
// returned without an error.
//
// Guarantee 3: the checksum is checked here, on every read.
func (j *Journal) Read(partition uint32, offset int64, maxBytes int, limit int64) (*Chunk, error) {
	return j.read(&reading{j: j, partition: partition, offset: offset, limit: limit, room: maxBytes})
}

func (j *Journal) read(r *reading) (*Chunk, error) {
	c := &Chunk{Next: r.offset, Behind: r.offset, pool: &j.buffers}
	for skipped := 0; skipped < maxSkipped; {
		run, err := r.next()
		if err != nil {
			return c.orError(err)
		}
		if run == nil {
			return c, nil
		}
		if len(run.locs) == 0 {
			run.seg.release()
			c.Next = run.next
			skipped++
		} else if err := j.readRun(run, c); err != nil {
			return c.orError(err)
		}
		r.offset = c.Next
	}
	return c, nil
}

// reading is a walk over a partition, segment by segment.
type reading struct {
	j         *Journal
	partition uint32
	offset    int64
	limit     int64
	room      int
	started   bool
	tag       *tagFilter // nil: all batches
}

// next finds the batches to read next, or nil when there are no more or enough.
func (r *reading) next() (*batchRun, error) {
	if r.started && r.room <= 0 {
		return nil, nil
	}
	f, err := r.span()
	if f == nil || err != nil {
		return nil, err
	}
	seg := f.seg
	if !f.open {
		t, err := r.j.tableOf(seg)
		if err != nil {
			seg.release()
			return nil, err
		}
		f.locs = f.locsOf(t)
	}
	if r.tag != nil {
		r.tag.use(r.j.indexer.tagsOf(seg))
	}
	run := r.choose(f)
	if run == nil {
		seg.release()
		return nil, nil
	}
	run.entries = f.entries
	return run, nil
}

// foundSpan is the part of a partition in which a reader goes on.
type foundSpan struct {
	span
	open    bool // its segment is the one being written to
	locs    []loc
	entries []entry
	size    uint64
	visible uint64
}

// span finds the span that holds the offset and takes a reference to its segment. Of the open segment the batch index is
// returned too.
func (r *reading) span() (f *foundSpan, err error) {
	r.j.ends(r.partition, func(p *partition, visible uint64, end int64) {
		f, err = r.spanOf(p, visible, end)
	})
	return f, err
}

// spanOf is span under mu.
func (r *reading) spanOf(p *partition, visible uint64, end int64) (*foundSpan, error) {
	segs := r.j.index.segs
	if segs == nil {
		return nil, ErrClosed
	}
	if start := min(p.lowest(), end); !r.started && (r.offset < start || r.offset > end) {
		return nil, &RangeError{Partition: r.partition, Offset: r.offset, Start: start, End: end}
	}
	if r.limit < 0 || r.limit > end {
		r.limit = end
	}
	i := p.spanOf(r.offset)
	if r.offset >= r.limit || i == len(p.spans) {
		return nil, nil
	}
	s := p.spans[i]
	if s.first > r.offset && r.started { // trimmed while we were reading
		return nil, nil
	}
	s.seg.acquire()
	return &foundSpan{span: s, open: s.seg == segs[len(segs)-1], locs: p.open.locs, entries: s.seg.entries, size: uint64(s.seg.size), visible: visible}, nil
}

// choose takes batches from the one with the offset on, as many as there is room for.
func (r *reading) choose(f *foundSpan) *batchRun {
	seg, locs, visible := f.seg, f.locs, f.visible
	first := sort.Search(len(locs), func(i int) bool { return locs[i].offset > r.offset }) - 1
	if first < 0 {
		return nil
	}
	n, last := first, first
	var wanted []loc
	for ; n < len(locs) && locs[n].offset < r.limit && seg.base+uint64(locs[n].rel) < visible; n++ {
		if r.tag != nil && !r.tag.wants(locs[n].rel) {
			continue
		}
		size := int(locs[n].length)
		if r.started && r.room < size {
			r.room = 0
			break
		}
		r.room -= size
		r.started = true
		if r.tag != nil {
			wanted, last = append(wanted, locs[n]), n
		}
	}
	if n == first {
		return nil
	}
	run := &batchRun{seg: seg, locs: locs[first:n], end: int64(min(f.size, visible-seg.base))}
	behind := func(n int) int64 {
		if n < len(locs) {
			return locs[n].offset
		}
		return f.next
	}
	run.next, run.behind = behind(n), behind(n)
	if r.tag != nil {
		run.locs, run.behind = wanted, behind(last+1)
	}
	return run
}
