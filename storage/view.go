package storage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// aheadBytes is how far a reader of old data is read ahead of, into the next segment too.
const aheadBytes = 2 << 20

// largePiece is from which size on asking for a piece's pages costs less than touching them.
const largePiece = 64 << 10

// view is a segment's file in memory. It is counted: one reference for the segment, one for each reader that holds
// pieces of it, so that nothing is unmapped or overwritten under a reader, a socket's write included.
type view struct {
	mapping   *vfs.Mapping
	base      uint64
	committed *atomic.Uint64 // of the journal
	cache     *Cache
	grains    []atomic.Pointer[grain] // nil: nothing is known of it, as it was never used
	refs      atomic.Int32
}

// piece is a stretch of a segment's file, within a grain.
type piece struct{ at, n int64 }

// piecePool keeps the memory of lists of pieces.
type piecePool struct{ pool sync.Pool }

// of returns the places of batches, neighbours on disk as one, cut where grains end. put gives the list back.
func (p *piecePool) of(locs []loc) *[]piece {
	list, _ := p.pool.Get().(*[]piece)
	if list == nil {
		list = new([]piece)
	}
	all := (*list)[:0]
	for _, l := range locs {
		for at, left := int64(l.rel), int64(l.length); left > 0; {
			n := min(left, grainBytes-at%grainBytes)
			if k := len(all) - 1; k >= 0 && all[k].at+all[k].n == at && at%grainBytes != 0 {
				all[k].n += n
			} else {
				all = append(all, piece{at, n})
			}
			at, left = at+n, left-n
		}
	}
	*list = all
	return list
}

func (p *piecePool) put(list *[]piece) { p.pool.Put(list) }

func (v *view) acquire() { v.refs.Add(1) }

// tryAcquire is acquire for one who has no reference; it fails if there is none at all any more.
func (v *view) tryAcquire() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		v.cache.forget(v)
		_ = v.mapping.Close() // was only read
	}
}

// viewOf returns the segment's view with a reference for the caller, who has one to the segment. It is nil if the file
// cannot be mapped, or not up to end: then it is read instead.
func (j *Journal) viewOf(seg *segment, end int64) *view {
	seg.viewMu.Lock()
	defer seg.viewMu.Unlock()
	if seg.view == nil {
		seg.view = j.mapView(seg, max(end, j.o.SegmentBytes))
	}
	if seg.view == nil || int64(len(seg.view.mapping.Bytes)) < end {
		return nil
	}
	seg.view.acquire()
	return seg.view
}

func (j *Journal) mapView(seg *segment, size int64) *view {
	m, ok := seg.file.(vfs.Mapper)
	if !ok {
		return nil
	}
	mapping, err := m.Map(size)
	if err != nil {
		return nil // a system that has no room for it lets the file be read
	}
	v := &view{mapping: mapping, base: seg.base, committed: &j.committed, cache: j.o.Cache}
	v.grains = make([]atomic.Pointer[grain], (size+grainBytes-1)/grainBytes)
	v.acquire()
	return v
}

// grain returns the one that a file offset lies in, making it if nobody has asked for it yet.
func (v *view) grain(at int64) *grain {
	p := &v.grains[at/grainBytes]
	if g := p.Load(); g != nil {
		return g
	}
	p.CompareAndSwap(nil, &grain{view: v, at: at &^ (grainBytes - 1)})
	return p.Load()
}

// dropView gives the segment's view up, once its readers are done.
func (s *segment) dropView() {
	s.viewMu.Lock()
	v := s.view
	s.view = nil
	s.viewMu.Unlock()
	if v != nil {
		v.release()
	}
}

// want tells the cache of a read of these pieces, which are in order, before they are touched; the segment's data ends
// at end. What is missing is asked for at once, so that the disk works on all of it together. It returns whether the
// reader is passing through old data, so that it will want what follows, and whether it may have to wait for the disk.
func (v *view) want(pieces []piece, end int64) (scanned, cold bool) {
	now := time.Now()
	var total, missing int64
	for len(pieces) > 0 {
		g := v.grain(pieces[0].at)
		mine, rest, bytes := g.cut(pieces)
		m, s := g.want(mine, bytes, end, now)
		total, missing, scanned = total+bytes, missing+m, s
		cold = cold || s // it was asked for, but may not have come yet
		pieces = rest
	}
	v.cache.hits.Add(uint64(total - missing))
	v.cache.misses.Add(uint64(missing))
	return scanned, cold || missing > 0
}

// await waits for the disk, where there is something to wait for, and maps large pieces at once.
func (v *view) await(pieces []piece, cold bool) {
	for _, p := range pieces {
		if cold || p.n >= largePiece {
			v.mapping.Populate(p.at, p.n)
		}
	}
}

// ahead reads on from a file offset, as far as n bytes reach in this segment, and returns what is left of n.
func (v *view) ahead(from, n, end int64) int64 {
	now := time.Now()
	for at := from &^ (grainBytes - 1); at < end && n > 0; at += grainBytes {
		v.grain(at).ahead(end, now)
		n -= grainBytes
	}
	return n
}

// cut splits off the pieces that lie in the grain.
func (g *grain) cut(pieces []piece) (mine, rest []piece, bytes int64) {
	n := 0
	for n < len(pieces) && pieces[n].at < g.at+grainBytes {
		bytes += pieces[n].n
		n++
	}
	return pieces[:n], pieces[n:], bytes
}
