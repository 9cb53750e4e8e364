package vfs

import (
	"hash/maphash"
	"maps"
	"math/rand"
	"slices"
)

// Cuts makes the disks that a power cut could leave, in the manner of ALICE: at each moment of a run that it is asked,
// subsets of what is in doubt. With few doubts these are all subsets. With more they are: none; all; each one alone
// lost; each one alone kept; all up to each of them (every sector boundary of every write, too); and random ones. A
// disk that was seen before, with the same tag, is left out. Not safe for concurrent use.
type Cuts struct {
	// Exhaustive is up to how many doubts all subsets are made: 5 if 0.
	Exhaustive int
	// Random is how many random subsets are made where there are more.
	Random int
	// Most is how many subsets are visited at one moment at most, picked by Rng: all if 0.
	Most int
	// Rng picks; required.
	Rng *rand.Rand

	seed maphash.Seed
	seen map[uint64]bool
}

// At calls visit with each disk that a cut of m at this moment could leave, until visit returns false. Tag names what
// must be true of the disk: the same disk with another tag is visited again. kept is what the cut kept of the doubts.
func (c *Cuts) At(m *Mem, tag string, visit func(disk *Mem, kept []Doubt) bool) {
	if c.seen == nil {
		c.seed, c.seen = maphash.MakeSeed(), map[uint64]bool{}
	}
	doubts := m.Doubts()
	subsets := c.subsets(len(doubts))
	if c.Most > 0 && len(subsets) > c.Most {
		c.Rng.Shuffle(len(subsets), func(i, k int) { subsets[i], subsets[k] = subsets[k], subsets[i] })
		subsets = subsets[:c.Most]
	}
	for _, keep := range subsets {
		var kept []Doubt
		for i, d := range doubts {
			if keep(i) {
				kept = append(kept, d)
			}
		}
		disk := m.Crash(kept)
		if key := disk.fingerprint(c.seed, tag); c.seen[key] {
			continue
		} else {
			c.seen[key] = true
		}
		if !visit(disk, kept) {
			return
		}
	}
}

// subsets returns which ones of n doubts to keep, several times.
func (c *Cuts) subsets(n int) (all []func(i int) bool) {
	exhaustive := c.Exhaustive
	if exhaustive == 0 {
		exhaustive = 5
	}
	if n <= exhaustive {
		for bits := range 1 << n {
			all = append(all, func(i int) bool { return bits>>i&1 == 1 })
		}
		return all
	}
	for k := range n + 1 {
		all = append(all, func(i int) bool { return i < k })
	}
	for k := range n {
		all = append(all, func(i int) bool { return i != k }, func(i int) bool { return i == k })
	}
	for range c.Random {
		bits := make([]bool, n)
		odds := c.Rng.Float64() // mostly lost, mostly kept, and between
		for i := range bits {
			bits[i] = c.Rng.Float64() < odds
		}
		all = append(all, func(i int) bool { return bits[i] })
	}
	return all
}

// fingerprint tells disks apart.
func (m *Mem) fingerprint(seed maphash.Seed, tag string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(tag)
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		_, _ = h.WriteString(name)
		_ = h.WriteByte(0)
		maphash.WriteComparable(&h, len(m.names[name].data))
		_, _ = h.Write(m.names[name].data)
	}
	return h.Sum64()
}
