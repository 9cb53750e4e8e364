package storage

import (
	"container/list"
	"sync"

	"github.com/daybook-data/daybook/internal/vfs"
)

// tableCache bounds how many sealed segments keep their batch and tag index in memory, and their file in the address space.
type tableCache struct {
	mu    sync.Mutex // guards all below
	limit int
	order *list.List // of *segment, most recently used first
	at    map[*segment]*list.Element
}

func newTableCache(limit int) *tableCache {
	return &tableCache{limit: limit, order: list.New(), at: map[*segment]*list.Element{}}
}

// add notes that seg's table was put in memory or used, and drops the one that was not used for longest.
func (c *tableCache) add(seg *segment) {
	if oldest := c.use(seg); oldest != nil {
		oldest.dropTables() // readers that have them keep them
	}
}

// use moves seg to the front, and returns a segment that has to go for it, or nil.
func (c *tableCache) use(seg *segment) *segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[seg]; e != nil {
		c.order.MoveToFront(e)
		return nil
	}
	c.at[seg] = c.order.PushFront(seg)
	if c.order.Len() <= c.limit {
		return nil
	}
	oldest := c.order.Remove(c.order.Back()).(*segment)
	delete(c.at, oldest)
	return oldest
}

func (c *tableCache) remove(seg *segment) {
	c.mu.Lock()
	if e := c.at[seg]; e != nil {
		c.order.Remove(e)
		delete(c.at, seg)
	}
	c.mu.Unlock()
	seg.dropTables()
}

// dropTables gives up what of a segment is in memory, but for its key index's directory.
func (s *segment) dropTables() {
	s.table.Store(nil)
	s.tagTable.Store(nil)
	s.dropView()
}

// tableOf returns the batch index of a sealed segment that the caller has a reference to.
func (j *Journal) tableOf(seg *segment) (*table, error) {
	t := seg.table.Load()
	if t == nil {
		var err error
		if t, err = readTable(j.fsys, seg); err != nil {
			if t, err = rebuildTable(seg); err != nil {
				return nil, err
			}
		}
		seg.table.Store(t)
	}
	j.cache.add(seg)
	return t, nil
}

// rebuildTable makes the batch index of a sealed segment from the directories of its frames.
func rebuildTable(seg *segment) (*table, error) {
	parts := map[uint32]*partition{}
	sc := &scanner{file: seg.file, size: seg.size}
	for i, e := range seg.entries {
		rel := int64(e.rel)
		frame, err := sc.bytes(rel, int(seg.entryEnd(i)-rel))
		if err != nil {
			return nil, err
		}
		h, ok := parseFrameHeader(frame, seg.base+uint64(rel))
		if !ok || int64(h.length) != seg.entryEnd(i)-rel || !h.checkDirectory(frame) {
			return nil, seg.damage(rel, seg.entryEnd(i), "frame header is damaged")
		}
		at := uint32(frameHeaderBytes + h.dirBytes())
		for k := range h.dirBytes() / dirEntryBytes {
			d := entryAt(frame, k)
			p := parts[d.partition]
			if p == nil {
				p = &partition{}
				parts[d.partition] = p
			}
			p.add(seg, loc{offset: d.baseOffset, rel: e.rel + at, length: d.length}, d.baseOffset+int64(d.records), d.maxTimestamp)
			at += d.length
		}
	}
	t, _ := seal(seg, parts)
	return t, nil
}

// readAll reads n bytes at off.
func readAll(f vfs.File, buf []byte, off int64) error {
	_, err := f.ReadAt(buf, off)
	return err
}
