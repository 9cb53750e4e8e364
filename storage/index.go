package storage

import (
	"maps"
	"math"
	"slices"
	"sort"
)

// blockBatches is how many batches of a partition share one entry of the time index.
const blockBatches = 64

// loc is where one batch lies in its segment.
type loc struct {
	offset int64 // base offset
	rel    uint32
	length uint32
}

// table is the batch index of a segment: of each partition its batches in order, and the largest timestamp of each
// block of them. What was once reachable through a table is never overwritten, so readers may keep slices of it.
type table struct {
	locs   []loc
	blocks []int64
}

// span is the part of a partition that lies in one segment.
type span struct {
	seg          *segment
	first, next  int64
	maxTimestamp int64
	count        uint32
	at, blockAt  uint32 // where its entries start in a sealed segment's table
}

// partition is the index of one partition: its spans in order, and the entries of the last span while its segment is
// the one being written. Guarded by Journal.mu.
type partition struct {
	spans []span
	open  table
	end   int64 // next offset
	start int64 // lowest offset that may be read, by TrimBefore
	txns  txns
}

// lowest is the first offset that can be read.
func (p *partition) lowest() int64 {
	first := p.end
	if len(p.spans) > 0 {
		first = p.spans[0].first
	}
	return min(p.end, max(first, p.start))
}

// add notes a batch at the end of the partition.
func (p *partition) add(seg *segment, l loc, next, maxTimestamp int64) {
	if n := len(p.spans); n == 0 || p.spans[n-1].seg != seg {
		p.spans = append(p.spans, span{seg: seg, first: l.offset, maxTimestamp: math.MinInt64})
		p.open = table{}
	}
	s := &p.spans[len(p.spans)-1]
	s.next, s.maxTimestamp = next, max(s.maxTimestamp, maxTimestamp)
	if s.count%blockBatches == 0 {
		p.open.blocks = append(p.open.blocks, maxTimestamp)
	} else if last := len(p.open.blocks) - 1; maxTimestamp > p.open.blocks[last] {
		p.open.blocks[last] = maxTimestamp
	}
	p.open.locs = append(p.open.locs, l)
	s.count++
	p.end = next
}

// spanOf is the index of the first span that reaches beyond offset.
func (p *partition) spanOf(offset int64) int {
	return sort.Search(len(p.spans), func(i int) bool { return p.spans[i].next > offset })
}

// visibleEnd is exactEnd, or less while the batch index of a segment that is committed only in part is not in memory.
func (p *partition) visibleEnd(visible uint64) int64 {
	end, _ := p.exactEnd(visible)
	return end
}

// exactEnd is the offset behind the last batch below the journal position visible. It needs the batch index of a sealed
// segment that is committed only in part; if that is not in memory, the segment is returned.
func (p *partition) exactEnd(visible uint64) (end int64, lacks *segment) {
	for i := len(p.spans) - 1; i >= 0; i-- {
		s := &p.spans[i]
		switch {
		case s.seg.end() <= visible:
			return s.next, nil
		case s.seg.base >= visible:
			continue
		}
		locs := p.open.locs
		if i != len(p.spans)-1 || len(locs) == 0 {
			e := s.seg.edge.Load()
			if e == nil {
				return s.first, s.seg
			}
			if e.table == nil {
				return s.first, nil
			}
			locs = s.locsOf(e.table)
		}
		rel := visible - s.seg.base
		n := sort.Search(len(locs), func(i int) bool { return uint64(locs[i].rel) >= rel })
		if n == len(locs) {
			return s.next, nil
		}
		return locs[n].offset, nil
	}
	if len(p.spans) > 0 {
		return p.spans[0].first, nil
	}
	return p.end, nil
}

// edge is the batch index of the sealed segment in which what is committed ends; nil if it cannot be read.
type edge struct{ table *table }

// locsOf cuts a span's entries out of its segment's table.
func (s *span) locsOf(t *table) []loc { return t.locs[s.at : s.at+s.count] }

// blocksOf cuts a span's time index out of its segment's table.
func (s *span) blocksOf(t *table) []int64 {
	return t.blocks[s.blockAt : s.blockAt+(s.count+blockBatches-1)/blockBatches]
}

// spanEntry is one partition's row in a sealed segment's index.
type spanEntry struct {
	partition uint32
	span      *span
	start     int64
}

// seal moves the open entries of all partitions into one table for the segment and returns the rows of its index.
func seal(seg *segment, parts map[uint32]*partition) (*table, []spanEntry) {
	t := &table{}
	var rows []spanEntry
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		p := parts[id]
		if len(p.spans) == 0 || p.spans[len(p.spans)-1].seg != seg {
			continue
		}
		s := &p.spans[len(p.spans)-1]
		s.at, s.blockAt = uint32(len(t.locs)), uint32(len(t.blocks))
		t.locs = append(t.locs, p.open.locs...)
		t.blocks = append(t.blocks, p.open.blocks...)
		p.open = table{}
		rows = append(rows, spanEntry{partition: id, span: s})
	}
	return t, rows
}
