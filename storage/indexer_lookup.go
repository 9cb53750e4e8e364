package storage

import "errors"

// tagsOf returns the tags of a segment's batches as far as they are known now, nil if they are not: then a reader gets
// all of it.
func (x *indexer) tagsOf(seg *segment) *tagTable {
	if t := seg.tagTable.Load(); t != nil {
		x.j.cache.add(seg)
		return t
	}
	x.mu.Lock()
	if x.seg == seg {
		t := x.open.tagTable()
		x.mu.Unlock()
		return t
	}
	x.mu.Unlock()
	x.j.mu.RLock()
	sealed := len(x.j.index.segs) > 0 && seg != x.j.index.segs[len(x.j.index.segs)-1]
	x.j.mu.RUnlock()
	if !sealed {
		return nil
	}
	t, err := readTags(x.j.fsys, seg)
	if err != nil {
		x.wake()
		return nil
	}
	seg.tagTable.Store(t)
	x.j.cache.add(seg)
	return t
}

// batchesOf returns the file offsets of a segment's committed batches that hold a key of this hash, in order.
func (x *indexer) batchesOf(seg *segment, last bool, hash uint64) ([]uint32, error) {
	if last {
		x.mu.Lock()
		defer x.mu.Unlock()
		c, err := x.follow(seg)
		if err != nil {
			return nil, err
		}
		return c.batchesOf(hash), nil
	}
	if err := x.ensure(seg); err != nil && !errors.Is(err, errNoIndex) {
		if isDamaged(err) {
			return nil, err
		}
		x.j.o.Logger.Warn("key index not written; the segment is read instead", "file", seg.path, "error", err)
	}
	if k := seg.keys.Load(); k != nil {
		if rels, err := k.batchesOf(x.j.fsys, hash); err == nil {
			return rels, nil
		}
		return x.again(seg, hash)
	}
	return x.scanFor(seg, hash)
}

// again makes a key index anew that turned out not to be believed.
func (x *indexer) again(seg *segment, hash uint64) ([]uint32, error) {
	_ = x.j.fsys.Remove(indexPath(seg.path, keySuffix)) // it is replaced
	seg.indexMu.Lock()
	seg.keys.Store(nil)
	seg.indexMu.Unlock()
	if err := x.ensure(seg); err == nil {
		if k := seg.keys.Load(); k != nil {
			if rels, err := k.batchesOf(x.j.fsys, hash); err == nil {
				return rels, nil
			}
		}
	}
	return x.scanFor(seg, hash)
}

// scanFor finds a key without an index.
func (x *indexer) scanFor(seg *segment, hash uint64) ([]uint32, error) {
	x.j.mu.RLock()
	end := min(x.j.visible(), seg.end())
	x.j.mu.RUnlock()
	if end <= seg.base {
		return nil, nil
	}
	c := newContents(seg, x.j.closing)
	if err := c.read(seg, int64(end-seg.base)); err != nil {
		return nil, err
	}
	return c.batchesOf(hash), nil
}

func isDamaged(err error) bool {
	var d *DamageError
	return errors.As(err, &d)
}
