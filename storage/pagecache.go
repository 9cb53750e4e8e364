package storage

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultCacheBytes is the budget of a Cache if nobody says.
const DefaultCacheBytes = 1 << 30

// Cache bounds how much of the kernel's page cache the journals that share it fill, so that neither a fast writer nor
// whoever digs through last month pushes out what live readers and the rest of the machine use. What was written is
// charged once it is on the disk, and what a read brought back from there when it does, until it is evicted. First to
// go is what was not used for long and lies far behind the end of its journal. It is safe for concurrent use.
type Cache struct {
	budget       int64
	hits, misses atomic.Uint64 // bytes

	mu      sync.Mutex // guards the charges: below, and the fields of a grain that say so
	charged []*grain   // in no order
	bytes   int64
}

// NewCache returns a cache with a budget in bytes; DefaultCacheBytes if it is 0.
func NewCache(budget int64) *Cache {
	if budget <= 0 {
		budget = DefaultCacheBytes
	}
	return &Cache{budget: budget}
}

// CacheStats tells what a Cache did. Hits and Misses are the bytes of batches that were in memory when they were read,
// and those that had to come from the disk; Bytes is what is charged to the budget now.
type CacheStats struct {
	Hits, Misses  uint64
	Bytes, Budget int64
}

// Stats returns the figures up to now.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Bytes: c.bytes, Budget: c.budget}
}

const (
	// evictSample is of how many charged grains the worst one goes: enough to be near the worst of all, without order.
	evictSample = 16
	// distanceUnit is how far from the end of the journal a grain counts for twice as old.
	distanceUnit = 64 << 20
)

// charge notes that a read or the writer brings bytes of the grain into memory, and evicts others if that is too much.
// No grain may be locked.
func (c *Cache) charge(g *grain, bytes int64) {
	if bytes == 0 {
		return
	}
	c.mu.Lock()
	if g.bytes == 0 {
		g.slot, c.charged = len(c.charged), append(c.charged, g)
	}
	bytes = min(bytes, grainBytes-g.bytes) // what was written may have been read back already
	g.bytes += bytes
	c.bytes += bytes
	var out []*grain
	for now := time.Now(); c.bytes > c.budget && len(c.charged) > 1; {
		worst := c.worst(now, g)
		if worst == nil || !worst.view.tryAcquire() { // the last reader has just given the view up, and forgets it next
			break
		}
		c.uncharge(worst)
		if b := worst.buddy(); b != nil {
			c.uncharge(b)
		}
		out = append(out, worst)
	}
	c.mu.Unlock()
	for _, g := range out {
		g.evict()
		g.view.release()
	}
}

// worst picks the grain to evict, but never the one in hand or its buddy. The caller holds mu.
func (c *Cache) worst(now time.Time, inHand *grain) *grain {
	var worst *grain
	var score float64
	for range evictSample {
		g := c.charged[rand.IntN(len(c.charged))]
		if g == inHand || g == inHand.buddy() {
			continue
		}
		if s := g.badness(now); worst == nil || s > score {
			worst, score = g, s
		}
	}
	return worst
}

// uncharge takes the grain's bytes off the budget. The caller holds mu.
func (c *Cache) uncharge(g *grain) {
	if g.bytes == 0 {
		return
	}
	last := c.charged[len(c.charged)-1]
	c.charged[g.slot], last.slot = last, g.slot
	c.charged = c.charged[:len(c.charged)-1]
	c.bytes -= g.bytes
	g.bytes = 0
}

// forget gives up all that is charged for a view that nobody uses any more.
func (c *Cache) forget(v *view) {
	c.mu.Lock()
	var out []*grain
	for i := range v.grains {
		if g := v.grains[i].Load(); g != nil && g.bytes > 0 {
			c.uncharge(g)
			out = append(out, g)
		}
	}
	c.mu.Unlock()
	for _, g := range out {
		g.evict()
	}
}
