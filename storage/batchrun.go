package storage

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"syscall"
)

// batchRun is a run of batches of one segment, to which it holds a reference.
type batchRun struct {
	seg     *segment
	entries []entry // of the segment, as they were when the batches were found
	locs    []loc
	behind  int64 // offset behind the last
	next    int64 // behind those that were left out, too
	end     int64 // of what may be read of the segment, as a file offset
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
	err := Guard(func() error { return r.readView(v, c) })
	if errors.Is(err, syscall.EIO) {
		return r.seg.lost(int64(r.locs[0].rel), int64(last.rel)+int64(last.length), err)
	}
	return err
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
		if err := r.seg.read(buf[at:at+n], int64(r.locs[i].rel)); err != nil {
			return err
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
