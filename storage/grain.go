package storage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

const (
	grainBytes = 1 << 20
	grainPages = grainBytes / vfs.PageBytes
	// believeFor is how long a page that was in memory is taken to be so still. If it is not, it is only counted wrong:
	// nothing depends on it.
	believeFor = 250 * time.Millisecond
	// forgetTaken is after how long what was read of a grain piece by piece counts no more.
	forgetTaken = 10 * time.Second
	// wholeShare is which part of a grain may be read piece by piece before it is read as a whole. A page that is looked
	// for costs the disk about as much as four that follow one another.
	wholeShare = 4
)

// grain is a MiB of a segment, and what is known of its presence in memory.
type grain struct {
	view *view
	at   int64        // file offset
	used atomic.Int64 // when it was last read or filled, Unix nanoseconds

	mu       sync.Mutex // guards down to the next line
	resident [grainPages / 64]uint64
	looked   time.Time // when the kernel was asked
	taken    int64     // bytes read piece by piece
	whole    bool      // all of it was asked for by a reader of old data

	// Guarded by Cache.mu:
	bytes int64 // charged
	slot  int   // in Cache.charged
}

// badness says how little the grain is worth: its age in seconds, times its distance from the end of the journal.
func (g *grain) badness(now time.Time) float64 {
	age := float64(now.UnixNano()-g.used.Load()) / 1e9
	distance := float64(int64(g.view.committed.Load()) - int64(g.view.base) - g.at)
	return (age + 1e-3) * (1 + max(distance, 0)/distanceUnit)
}

// buddy is the other half of the 2 MiB that g is in; nil if the file ends before it, or nothing is known of it. The kernel
// may keep both as one page, of which it drops all or nothing.
func (g *grain) buddy() *grain {
	i := int(g.at/grainBytes) ^ 1
	if i >= len(g.view.grains) {
		return nil
	}
	return g.view.grains[i].Load()
}

// evict lets go of the memory of the grain and its buddy.
func (g *grain) evict() {
	g.forget()
	if b := g.buddy(); b != nil {
		b.forget()
	}
	g.view.mapping.Forget(g.at&^(2*grainBytes-1), 2*grainBytes)
}

// forget takes it that nothing of the grain is in memory.
func (g *grain) forget() {
	g.mu.Lock()
	g.resident, g.taken, g.whole = [grainPages / 64]uint64{}, 0, false
	g.mu.Unlock()
}

// written is told that the grain is full and on the disk.
func (g *grain) written(now time.Time) {
	g.used.Store(now.UnixNano())
	g.view.cache.charge(g, grainBytes)
}

// want is told of the pieces of a read that lie in the grain, of bytes in all; the file ends at end. It returns what
// was not in memory, having asked the kernel for it, and whether the reader reads here in passing, so that the grains
// that follow will be wanted.
func (g *grain) want(pieces []piece, bytes, end int64, now time.Time) (missing int64, scanned bool) {
	g.used.Store(now.UnixNano())
	missing, pages, scanned := g.request(pieces, bytes, end, now)
	g.view.cache.charge(g, pages*vfs.PageBytes)
	return missing, scanned
}

// request is want without the charge, which is for so many pages.
func (g *grain) request(pieces []piece, bytes, end int64, now time.Time) (missing, pages int64, scanned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.firstMissing(pieces)
	if first == len(pieces) && now.Sub(g.looked) < believeFor {
		return 0, 0, g.whole
	}
	if now.Sub(g.looked) > forgetTaken {
		g.taken = 0
	}
	g.look(end, now)
	if first = g.firstMissing(pieces); first == len(pieces) {
		return 0, 0, g.whole
	}
	g.taken += bytes + int64(len(pieces))*vfs.PageBytes
	if g.taken >= grainBytes/wholeShare {
		g.whole = true
		return bytes, g.load(0, min(grainBytes, end-g.at)), true
	}
	for _, p := range pieces[first:] {
		if n := g.load(p.at-g.at, p.n); n > 0 {
			pages, missing = pages+n, missing+p.n
		}
	}
	return missing, pages, g.whole
}

// ahead asks for all of the grain, as a reader is about to come, unless that was done before.
func (g *grain) ahead(end int64, now time.Time) {
	g.mu.Lock()
	if g.whole {
		g.mu.Unlock()
		return
	}
	g.used.Store(now.UnixNano())
	g.look(end, now)
	g.whole = true
	pages := g.load(0, min(grainBytes, end-g.at))
	g.mu.Unlock()
	g.view.cache.charge(g, pages*vfs.PageBytes)
}

// look asks the kernel which pages are in memory.
func (g *grain) look(end int64, now time.Time) {
	var vec [grainPages]byte
	g.view.mapping.Resident(g.at, min(grainBytes, end-g.at), vec[:])
	g.resident = [grainPages / 64]uint64{}
	for i, v := range vec {
		g.resident[i/64] |= uint64(v&1) << (i % 64)
	}
	g.looked = now
}

// firstMissing is the index of the first piece that is not in memory as a whole.
func (g *grain) firstMissing(pieces []piece) int {
	for i, p := range pieces {
		for page := (p.at - g.at) / vfs.PageBytes; page*vfs.PageBytes < p.at-g.at+p.n; page++ {
			if g.resident[page/64]&(1<<(page%64)) == 0 {
				return i
			}
		}
	}
	return len(pieces)
}

// load asks for what is missing of n bytes at an offset in the grain, and returns how many pages that is.
func (g *grain) load(at, n int64) (pages int64) {
	first, end := at/vfs.PageBytes, (at+n+vfs.PageBytes-1)/vfs.PageBytes
	for page := first; page < end; page++ {
		word, bit := &g.resident[page/64], uint64(1)<<(page%64)
		if *word&bit == 0 {
			pages++
			*word |= bit
		}
	}
	if pages > 0 {
		g.view.mapping.WillNeed(g.at+at, n)
	}
	return pages
}
