package storage

import (
	"fmt"
	"slices"
	"sort"
	"sync"
)

// Chunk is what Read found: whole batches of one partition, in order.
type Chunk struct {
	// Pieces are the batches' bytes, to be sent one after the other. They may be used until Release, and must not be
	// changed: mostly they are the file's own pages. Whoever does more than pass them to a socket does it in Guard.
	Pieces [][]byte
	// Bytes is the length of all pieces.
	Bytes int
	// Next is the offset behind the last batch, and behind batches that ReadTagged left out; the offset that was asked
	// for if there is neither.
	Next int64
	// Behind is the offset behind the last batch of Pieces; the offset that was asked for if there is none.
	Behind int64

	pool *sync.Pool // of *[]byte; nil: memory is not used again
	held []*[]byte
	runs []heldRun
}

// heldRun keeps the pages that pieces lie in.
type heldRun struct {
	seg  *segment
	view *view
}

// Release gives the memory back; the pieces must not be used any more. It may be called again.
func (c *Chunk) Release() {
	for _, b := range c.held {
		c.pool.Put(b)
	}
	for _, r := range c.runs {
		r.view.release()
		r.seg.release()
	}
	c.Pieces, c.held, c.runs = nil, nil, nil
}

// buffer returns n bytes that are the chunk's until Release.
func (c *Chunk) buffer(n int) []byte {
	if c.pool == nil {
		return make([]byte, n)
	}
	b, _ := c.pool.Get().(*[]byte)
	if b == nil || cap(*b) < n {
		grown := make([]byte, max(n, 64<<10))
		b = &grown
	}
	c.held = append(c.held, b)
	return (*b)[:n]
}

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

// orError is what was read before an error, or the error if that is nothing.
func (c *Chunk) orError(err error) (*Chunk, error) {
	if c.Bytes > 0 {
		return c, nil
	}
	c.Release()
	return nil, err
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

// batchRun is a run of batches of one segment, to which it holds a reference.
type batchRun struct {
	seg     *segment
	entries []entry // of the segment, as they were when the batches were found
	locs    []loc
	behind  int64 // offset behind the last
	next    int64 // behind those that were left out, too
	end     int64 // of what may be read of the segment, as a file offset
}

// next finds the batches to read next, or nil when there are no more or enough.
func (r *reading) next() (*batchRun, error) {
	if r.started && r.room <= 0 {
		return nil, nil
	}
	visible := r.j.visible()
	s, locs, entries, size, open, err := r.span(visible)
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
	if r.tag != nil {
		r.tag.use(r.j.indexer.tagsOf(seg))
	}
	run := r.choose(seg, locs, s.next, size, visible)
	if run == nil {
		seg.release()
		return nil, nil
	}
	run.entries = entries
	return run, nil
}

// span finds the span that holds the offset and takes a reference to its segment. Of the open segment the batch index is
// returned too.
func (r *reading) span(visible uint64) (_ *span, locs []loc, entries []entry, size uint64, open bool, err error) {
	j := r.j
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.index.segs == nil {
		return nil, nil, nil, 0, false, ErrClosed
	}
	p := j.index.parts[r.partition]
	if p == nil {
		p = &partition{}
	}
	end := p.visibleEnd(visible)
	if start := min(p.lowest(), end); !r.started && (r.offset < start || r.offset > end) {
		return nil, nil, nil, 0, false, &RangeError{Partition: r.partition, Offset: r.offset, Start: start, End: end}
	}
	if r.limit < 0 || r.limit > end {
		r.limit = end
	}
	i := p.spanOf(r.offset)
	if r.offset >= r.limit || i == len(p.spans) {
		return nil, nil, nil, 0, false, nil
	}
	s := p.spans[i]
	if s.first > r.offset && r.started { // trimmed while we were reading
		return nil, nil, nil, 0, false, nil
	}
	s.seg.acquire()
	open = s.seg == j.index.segs[len(j.index.segs)-1]
	return &s, p.open.locs, s.seg.entries, uint64(s.seg.size), open, nil
}

// choose takes batches from the one with the offset on, as many as there is room for.
func (r *reading) choose(seg *segment, locs []loc, next int64, size, visible uint64) *batchRun {
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
	run := &batchRun{seg: seg, locs: locs[first:n], end: int64(min(size, visible-seg.base))}
	behind := func(n int) int64 {
		if n < len(locs) {
			return locs[n].offset
		}
		return next
	}
	run.next, run.behind = behind(n), behind(n)
	if r.tag != nil {
		run.locs, run.behind = wanted, behind(last+1)
	}
	return run
}

// readRun reads and checks a run's batches into the chunk, and takes the run's reference to the segment over.
func (j *Journal) readRun(r *batchRun, c *Chunk) error {
	last := r.locs[len(r.locs)-1]
	v := j.viewOf(r.seg, int64(last.rel)+int64(last.length))
	if v == nil {
		defer r.seg.release()
		return r.readCopy(c)
	}
	c.runs = append(c.runs, heldRun{r.seg, v})
	pieces := j.pieces.of(r.locs)
	defer j.pieces.put(pieces)
	scanned, cold := v.want(*pieces, r.end)
	if scanned {
		j.readAhead(r.seg, v, int64(last.rel)+int64(last.length), r.end)
	}
	v.await(*pieces, cold)
	c.Pieces = slices.Grow(c.Pieces, len(*pieces))
	return Guard(func() error { return r.readView(v, c) })
}

// readView adds the run's batches to the chunk as they lie in memory.
func (r *batchRun) readView(v *view, c *Chunk) error {
	from := int(r.locs[0].rel) // of the stretch that is not added yet
	for i, l := range r.locs {
		at := int(l.rel)
		if i > 0 && at != int(r.locs[i-1].rel+r.locs[i-1].length) {
			c.add(v.mapping.Bytes[from:r.locs[i-1].rel+r.locs[i-1].length], l.offset)
			from = at
		}
		if err := r.check(v.mapping.Bytes[at:at+int(l.length)], l); err != nil {
			if at > from {
				c.add(v.mapping.Bytes[from:at], l.offset)
			}
			return err
		}
	}
	last := r.locs[len(r.locs)-1]
	c.add(v.mapping.Bytes[from:last.rel+last.length], r.behind)
	c.Next = r.next
	return nil
}

// readAhead lets the disk work on what a reader of old data will want next, in the next segment too.
func (j *Journal) readAhead(seg *segment, v *view, from, end int64) {
	left := v.ahead(from, aheadBytes, end)
	if left <= 0 {
		return
	}
	j.mu.RLock()
	segs := j.index.segs
	i := sort.Search(len(segs), func(i int) bool { return segs[i].base > seg.base })
	if i == len(segs) {
		j.mu.RUnlock()
		return
	}
	next := segs[i]
	size := next.size
	next.acquire()
	j.mu.RUnlock()
	defer next.release()
	if v := j.viewOf(next, size); v != nil {
		v.ahead(0, left, size)
		v.release()
	}
}

// readCopy reads the run's batches into memory of the chunk, where the file cannot be looked at in memory. Neighbours
// on disk are read at once.
func (r *batchRun) readCopy(c *Chunk) error {
	total := 0
	for _, l := range r.locs {
		total += int(l.length)
	}
	buf := c.buffer(total)
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
			c.add(buf, r.behind)
			c.Next = r.next
		}
	}
	return nil
}

func (c *Chunk) add(piece []byte, next int64) {
	c.Pieces = append(c.Pieces, piece)
	c.Bytes += len(piece)
	c.Next, c.Behind = next, next
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
