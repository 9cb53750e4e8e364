package storage

import (
	"fmt"
	"math"
)

// Found is a record that was looked up by its time.
type Found struct {
	Offset      int64
	Timestamp   int64 // ms
	LeaderEpoch int32
}

// OffsetForTime returns the first committed record, in the order of offsets, whose timestamp is at least ms; false if
// there is none. Timestamps need not be in order. In a batch of LogAppendTime every record has the batch's time.
func (j *Journal) OffsetForTime(partition uint32, ms int64) (Found, bool, error) {
	start, end := j.Bounds(partition)
	return j.findRecord(partition, start, end, func(s *timeSpan) (Found, bool, error) { return s.firstAtOrAfter(ms, start, end) })
}

// MaxTimestamp returns the first committed record that has the largest timestamp of the partition; false if there is
// no record.
func (j *Journal) MaxTimestamp(partition uint32) (Found, bool, error) {
	start, end := j.Bounds(partition)
	best := Found{Timestamp: math.MinInt64}
	found := false
	_, _, err := j.findRecord(partition, start, end, func(s *timeSpan) (Found, bool, error) {
		if found && s.maxTimestamp <= best.Timestamp {
			return Found{}, false, nil
		}
		f, ok, err := s.largest(start, end)
		if ok && (!found || f.Timestamp > best.Timestamp) {
			best, found = f, true
		}
		return Found{}, false, err
	})
	return best, found && err == nil, err
}

// timeSpan is a span with its batch index.
type timeSpan struct {
	span
	entries []entry // of the segment
	locs    []loc
	blocks  []int64
	dir     directory // of the last frame that was looked into
}

// findRecord calls look for each span of the partition until it finds something.
func (j *Journal) findRecord(id uint32, start, end int64, look func(*timeSpan) (Found, bool, error)) (Found, bool, error) {
	for offset := start; offset < end; {
		s, err := j.timeSpan(id, offset)
		if s == nil || err != nil {
			return Found{}, false, err
		}
		f, ok, err := look(s)
		s.seg.release()
		if ok || err != nil {
			return f, ok, err
		}
		offset = s.next
	}
	return Found{}, false, nil
}

// timeSpan returns the span that reaches beyond offset, with a reference to its segment.
func (j *Journal) timeSpan(id uint32, offset int64) (*timeSpan, error) {
	j.mu.RLock()
	p := j.index.parts[id]
	if p == nil || len(j.index.segs) == 0 {
		j.mu.RUnlock()
		return nil, nil
	}
	i := p.spanOf(offset)
	if i == len(p.spans) {
		j.mu.RUnlock()
		return nil, nil
	}
	s := &timeSpan{span: p.spans[i], entries: p.spans[i].seg.entries}
	s.seg.acquire()
	open := s.seg == j.index.segs[len(j.index.segs)-1]
	if open {
		s.locs = p.open.locs
		s.blocks = append([]int64(nil), p.open.blocks...) // the last one still changes
	}
	j.mu.RUnlock()
	if open {
		return s, nil
	}
	t, err := j.tableOf(s.seg)
	if err != nil {
		s.seg.release()
		return nil, err
	}
	s.locs, s.blocks = s.locsOf(t), s.blocksOf(t)
	return s, nil
}

// firstAtOrAfter finds the first record from start on and below end with a timestamp of at least ms.
func (s *timeSpan) firstAtOrAfter(ms, start, end int64) (Found, bool, error) {
	if s.maxTimestamp < ms {
		return Found{}, false, nil
	}
	for b, largest := range s.blocks {
		if largest < ms {
			continue
		}
		for _, l := range s.block(b) {
			if l.offset >= end {
				return Found{}, false, nil
			}
			d, err := s.entry(l)
			if err != nil {
				return Found{}, false, err
			}
			if d.maxTimestamp < ms || d.baseOffset+int64(d.records) <= start {
				continue
			}
			f, ok, err := s.inBatch(l, start, func(offset, ts int64) bool { return ts >= ms && offset >= start && offset < end })
			if ok || err != nil {
				return f, ok, err
			}
		}
	}
	return Found{}, false, nil
}

// largest finds the first record with the span's largest timestamp between start and end.
func (s *timeSpan) largest(start, end int64) (best Found, ok bool, err error) {
	for b, largest := range s.blocks {
		if ok && largest <= best.Timestamp {
			continue
		}
		for _, l := range s.block(b) {
			d, err := s.entry(l)
			if err != nil {
				return best, false, err
			}
			if l.offset >= end {
				return best, ok, nil
			}
			if ok && d.maxTimestamp <= best.Timestamp || d.baseOffset+int64(d.records) <= start {
				continue
			}
			f, found, err := s.maxInBatch(l, start, end)
			if err != nil {
				return best, false, err
			}
			if found && (!ok || f.Timestamp > best.Timestamp) {
				best, ok = f, true
			}
		}
	}
	return best, ok, nil
}

func (s *timeSpan) maxInBatch(l loc, start, end int64) (Found, bool, error) {
	best := Found{Timestamp: math.MinInt64, Offset: -1}
	f, _, err := s.inBatch(l, start, func(offset, ts int64) bool {
		if offset >= start && offset < end && (best.Offset < 0 || ts > best.Timestamp) {
			best.Offset, best.Timestamp = offset, ts
		}
		return false
	})
	best.LeaderEpoch = f.LeaderEpoch
	return best, best.Offset >= 0, err
}

// block is the batches of a block of the time index. The open segment's index may have grown since its blocks were
// copied, but never so that a copied block lacks a batch.
func (s *timeSpan) block(b int) []loc {
	return s.locs[b*blockBatches : min((b+1)*blockBatches, len(s.locs))]
}

// entry returns what the frame's directory says of a batch: unlike the batch's own header, it can be checked without the
// rest of the batch, and damage must not pass it over.
func (s *timeSpan) entry(l loc) (dirEntry, error) {
	if err := s.dir.read(s.seg, entryAround(s.entries, l.rel), l.rel); err != nil {
		return dirEntry{}, err
	}
	d, ok := s.dir.find(s.seg, l.rel)
	if !ok || d.baseOffset != l.offset || d.length != l.length {
		return d, s.seg.damage(int64(l.rel), int64(l.rel)+int64(l.length), fmt.Sprintf("batch at offset %d is not where the index says", l.offset))
	}
	return d, nil
}

// inBatch returns the first record of a batch that pick takes; start is the lowest offset that it can take.
func (s *timeSpan) inBatch(l loc, start int64, pick func(offset, ts int64) bool) (Found, bool, error) {
	run := batchRun{seg: s.seg, entries: s.entries, locs: []loc{l}}
	var c Chunk
	if err := run.readCopy(&c); err != nil {
		return Found{}, false, err
	}
	data := c.Pieces[0]
	h := parseHeader(data)
	f := Found{LeaderEpoch: h.LeaderEpoch}
	found := false
	err := eachTimestamp(h, data[batchHeaderBytes:], start, func(offset, ts int64) bool {
		if pick(offset, ts) {
			f.Offset, f.Timestamp, found = offset, ts, true
		}
		return !found
	})
	if err != nil && !found && pick(max(h.BaseOffset, start), h.MaxTimestamp) {
		// The producer's records cannot be read, though its checksum holds. They are served as they came, and for a
		// search the batch counts as one record: it must not hide what lies behind it.
		f.Offset, f.Timestamp, found = max(h.BaseOffset, start), h.MaxTimestamp, true
	}
	return f, found, nil
}
