package reorder

import (
	"cmp"
	"slices"
)

// A table holds the partitions and sources of a buffer and knows the order of
// their names.
type table struct {
	parts  []partition
	byName map[string]Partition
	live   liveHeap
	ranked []sourceID // by (source name, partition name)
	unused []sourceID
	max    int64 // the greatest M of all sources, forgotten ones included
	// lookAt is the number of sources at which to look again for some to forget.
	lookAt int
}

const forgetFrom = 256

func (t *table) init() {
	*t = table{byName: map[string]Partition{}, max: MinTime, lookAt: forgetFrom}
}

func (t *table) source(id sourceID) *source { return &t.live.all[id] }

// addPartition registers name with an idle source of its own.
func (t *table) addPartition(name string) Partition {
	p, ok := t.byName[name]
	if !ok {
		p = Partition(len(t.parts))
		t.parts = append(t.parts, partition{})
		t.byName[name] = p
	}
	t.parts[p] = partition{name: name}
	t.parts[p].own = t.addSource(p, name)
	t.source(t.parts[p].own).own = true
	return p
}

// addSource registers an idle source.
func (t *table) addSource(p Partition, name string) sourceID {
	var id sourceID
	if n := len(t.unused); n > 0 {
		id = t.unused[n-1]
		t.unused = t.unused[:n-1]
	} else {
		id = sourceID(len(t.live.all))
		t.live.all = append(t.live.all, source{})
		t.live.rank = append(t.live.rank, 0)
	}
	t.live.all[id] = source{name: name, partition: p, max: MinTime, redo: MinTime, lastStamp: MinTime, at: none}
	at, _ := slices.BinarySearchFunc(t.ranked, id, t.compare)
	t.ranked = slices.Insert(t.ranked, at, id)
	t.rerank(at)
	return id
}

func (t *table) compare(a, b sourceID) int {
	x, y := t.source(a), t.source(b)
	if c := cmp.Compare(x.name, y.name); c != 0 {
		return c
	}
	return cmp.Compare(t.parts[x.partition].name, t.parts[y.partition].name)
}

func (t *table) rerank(from int) {
	for i := from; i < len(t.ranked); i++ {
		t.live.rank[t.ranked[i]] = int32(i)
	}
}

// producer returns the source called name inside partition p, new if need be.
func (t *table) producer(p Partition, name string) sourceID {
	part := &t.parts[p]
	id, ok := part.find(name)
	if ok {
		return id
	}
	id = t.addSource(p, name)
	if part.byName == nil {
		part.byName = map[string]sourceID{}
	}
	part.byName[name] = id
	part.lastName, part.lastID = name, id
	return id
}

// crowded reports whether it is time to look for sources to forget. The number at
// which it is doubles with what had to stay, so looking costs little per source.
func (t *table) crowded() bool { return len(t.ranked) >= t.lookAt }

// forget drops producers that are idle and below the watermark, if nothing of them
// is held (which, once settled, only clamped records can be): if one comes back as
// new, everything is decided as if it had been remembered. (Idle: it is not in the
// minimum. M below W: neither the minimum nor, for OrderSource, a later order time
// that is not late can come from it.)
func (t *table) forget(watermark int64, holds func(sourceID) bool) {
	kept := t.ranked[:0]
	for _, id := range t.ranked {
		s := t.source(id)
		if s.own || s.at != none || s.max >= watermark || holds(id) {
			kept = append(kept, id)
			continue
		}
		t.drop(id)
	}
	t.ranked = kept
	t.rerank(0)
	t.lookAt = max(forgetFrom, 2*len(t.ranked))
}

// drop frees the entry; the caller takes it out of ranked.
func (t *table) drop(id sourceID) {
	s := t.source(id)
	part := &t.parts[s.partition]
	delete(part.byName, s.name)
	part.lastName = ""
	*s = source{free: true, at: none}
	t.unused = append(t.unused, id)
}

// dropPartition forgets a partition and its sources, live or not.
func (t *table) dropPartition(p Partition) {
	kept := t.ranked[:0]
	for _, id := range t.ranked {
		if t.source(id).partition != p {
			kept = append(kept, id)
			continue
		}
		if t.source(id).at != none {
			t.live.remove(id)
		}
		t.drop(id)
	}
	t.ranked = kept
	t.rerank(0)
	t.parts[p] = partition{name: t.parts[p].name, revoked: true}
}
