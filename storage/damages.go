package storage

import (
	"slices"
	"sync"
)

// damages are the stretches in which readers of an open journal have found damage, one for each segment, until they are
// mended.
type damages struct {
	mu  sync.Mutex
	all map[uint64]*DamageError // by the segment's base; guarded by mu
}

// Damages returns what is known to be damaged, in the order of the log.
func (j *Journal) Damages() []*DamageError {
	j.mu.RLock()
	bases := make(map[uint64]bool, len(j.index.segs))
	for _, s := range j.index.segs {
		bases[s.base] = true
	}
	j.mu.RUnlock()
	d := &j.damages
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*DamageError
	for base, e := range d.all {
		if bases[base] {
			found = append(found, e)
		} else {
			delete(d.all, base) // retention has removed it, or it was cut off
		}
	}
	slices.SortFunc(found, func(a, b *DamageError) int { return int(min(1, max(-1, int64(a.Position-b.Position)))) })
	return found
}

// DamagedUpTo is the last entry of the last segment that is known to be damaged; 0 if none is.
func (j *Journal) DamagedUpTo() (index uint64) {
	all := j.Damages()
	if len(all) == 0 {
		return 0
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, s := range j.index.segs {
		if s.base <= all[len(all)-1].Position && len(s.entries) > 0 {
			index = s.last()
		}
	}
	return index
}

// note takes a damage in and says whether none was known of the segment.
func (d *damages) note(base uint64, e *DamageError) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[uint64]*DamageError{}
	}
	if d.all[base] != nil {
		return false // mending looks at the whole segment
	}
	d.all[base] = e
	return true
}

func (d *damages) forget(base uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, base)
}

// report is how a segment of an open journal tells of damage that a reader has found in it.
func (j *Journal) report(s *segment, e *DamageError) {
	if j.damages.note(s.base, e) && j.o.OnDamage != nil {
		j.o.OnDamage(e)
	}
}
