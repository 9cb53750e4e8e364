package storage

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// SetRetention changes what the journal keeps.
func (j *Journal) SetRetention(r Retention) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keep = r
}

// Hold keeps, for a registered reader, everything from these offsets on, against every retention. A second call with
// the same name replaces the first. Holds are not stored: readers register again after a restart.
func (j *Journal) Hold(name string, offsets map[uint32]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holds[name] = maps.Clone(offsets)
}

// Unhold ends a reader's hold.
func (j *Journal) Unhold(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.holds, name)
}

// Size is the number of bytes in frames that the journal keeps.
func (j *Journal) Size() int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.index.bytes()
}

func (x *index) bytes() (n int64) {
	for _, s := range x.segs {
		n += s.size
	}
	return n
}

// Retain removes the segments at the front that retention no longer keeps, and returns how many those were. Nothing is
// removed that raft has not applied or that a reader holds. Age is by the time of the append, so what a record says of
// itself cannot keep a segment or lose it.
//
// Guarantee 5.
func (j *Journal) Retain() (removed int, err error) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return 0, err
	}
	j.lookAhead()
	if err := j.rollExpired(); Refused(err) {
		return 0, err
	} else if err != nil {
		return 0, j.fail(err)
	}
	n := j.expired()
	if n == 0 {
		return 0, nil
	}
	if err := j.trim(n); err != nil {
		return 0, err
	}
	return n, nil
}

// rollExpired seals the current segment if retention by age would remove it: only whole segments are removed.
func (j *Journal) rollExpired() error {
	seg := j.current()
	j.mu.RLock()
	old := j.tooOld(seg) && len(seg.entries) > 0 && j.committed.Load() >= seg.end() && !j.held(seg)
	j.mu.RUnlock()
	if !old {
		return nil
	}
	return j.roll(0)
}

// tooOld says whether the segment is older than retention by age keeps. The caller holds mu.
func (j *Journal) tooOld(seg *segment) bool {
	if j.keep.Age <= 0 || len(seg.entries) == 0 {
		return false
	}
	now := j.o.Now()
	last := time.UnixMicro(seg.lastStamp)
	if last.After(now) {
		last = j.written(seg, now)
	}
	return now.Sub(last) > j.keep.Age
}

// lookAhead looks at all segments that count from when they are first looked at: retention itself stops at the first that stays.
func (j *Journal) lookAhead() {
	j.mu.RLock()
	defer j.mu.RUnlock()
	now := j.o.Now()
	for _, seg := range j.index.segs {
		if j.keep.Age > 0 && time.UnixMicro(seg.lastStamp).After(now) {
			j.written(seg, now)
		}
	}
}

// written is when a segment was written whose stamps lie in the future, as those of a leader whose clock was ahead, and all
// that follow them: its file knows. If that is of the same clock, the segment counts from when it was first looked at.
func (j *Journal) written(seg *segment, now time.Time) time.Time {
	if info, err := j.fsys.Stat(seg.path); err == nil && !info.ModTime().IsZero() && !info.ModTime().After(now) {
		return info.ModTime()
	}
	if at := seg.seen.Load(); at != nil && !at.After(now) {
		return *at
	}
	seg.seen.Store(&now)
	return now
}

// held says whether a registered reader still needs the segment. The caller holds mu.
func (j *Journal) held(seg *segment) bool {
	for _, offsets := range j.holds {
		for id, offset := range offsets {
			p := j.index.parts[id]
			if p == nil {
				continue
			}
			for i := range p.spans {
				if s := &p.spans[i]; s.seg == seg && s.next > offset {
					return true
				}
			}
		}
	}
	return false
}

// expired counts the segments at the front that may go and should.
func (j *Journal) expired() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	size := j.index.bytes()
	return j.removable(func(seg *segment) bool {
		if !j.tooMuch(size, seg) && !j.tooOld(seg) {
			return false
		}
		size -= seg.size
		return true
	})
}

// tooMuch says whether retention by size removes the segment, the first of so many bytes. The caller holds mu.
func (j *Journal) tooMuch(size int64, seg *segment) bool {
	return j.keep.Bytes > 0 && size-seg.size >= j.keep.Bytes
}

// removable counts the segments at the front that should go and may. The caller holds mu.
func (j *Journal) removable(should func(*segment) bool) (n int) {
	for _, seg := range j.index.segs[:len(j.index.segs)-1] {
		if seg.end() > j.committed.Load() || j.held(seg) || !should(seg) {
			break
		}
		n++
	}
	// Raft must never take the entry before the front, of which only index and term are known, for one that it could
	// send: it would if that entry were the first of all, or the one behind the snapshot that raft started from.
	if n > 0 && j.index.segs[n-1].last() == j.index.raftFront+1 {
		n--
	}
	return n
}

// trim removes the first n segments. What the log links to from then on is made durable before anything goes, so an
// interruption leaves files that the next start removes.
func (j *Journal) trim(n int) error { return j.trimTo(n, func(*tail) {}) }

// trimTo is trim, and lets edit change what the log links to.
func (j *Journal) trimTo(n int, edit func(front *tail)) error {
	j.mu.RLock()
	gone := append([]*segment(nil), j.index.segs[:n]...)
	j.mu.RUnlock()
	front, err := j.endState(gone[n-1])
	if err != nil {
		return fmt.Errorf("trimming the front: %w", err)
	}
	edit(front)
	old := j.start.front
	j.start.front = front
	err = j.start.write()
	if errors.Is(err, ErrDiskFull) { // the state has outgrown its file, and the space is what we are about to free
		j.dropSpares()
		err = j.start.write()
	}
	if errors.Is(err, ErrDiskFull) {
		j.start.front = old
		return err
	}
	if err != nil {
		return j.fail(err)
	}
	j.mu.Lock()
	j.index.segs = append([]*segment(nil), j.index.segs[n:]...)
	j.index.front = *front
	for _, p := range j.index.parts {
		p.dropBelow(front.pos)
	}
	j.mu.Unlock()
	for _, seg := range gone {
		j.cache.remove(seg)
		j.removeIndexes(seg.path)
		seg.discard = j.recycle
		seg.release()
	}
	return nil
}

// dropBelow forgets what lies in segments below a journal position.
func (p *partition) dropBelow(position uint64) {
	n := 0
	for n < len(p.spans) && p.spans[n].seg.base < position {
		n++
	}
	if n == 0 {
		return
	}
	p.spans = append([]span(nil), p.spans[n:]...)
	if len(p.spans) == 0 {
		p.open = table{}
	}
	low := p.lowest()
	k := 0
	for k < len(p.txns.aborted) && p.txns.aborted[k].Last < low {
		k++
	}
	p.txns.aborted = append([]Aborted(nil), p.txns.aborted[k:]...)
}

// endState returns the state behind a sealed segment: from its index, or else by reading the segment.
func (j *Journal) endState(seg *segment) (*tail, error) {
	probe := &segment{base: seg.base, path: seg.path, file: seg.file}
	if x, err := readIndex(j.fsys, probe); err == nil && probe.lastCRC == seg.lastCRC && probe.end() == seg.end() {
		return x.end, nil
	}
	state := j.start.front.clone()
	j.mu.RLock()
	segs := append([]*segment(nil), j.index.segs...)
	j.mu.RUnlock()
	for _, s := range segs {
		l := &loadedLog{tail: state, index: index{parts: map[uint32]*partition{}}}
		again := &segment{base: s.base, path: s.path, file: s.file}
		if stop, err := l.scan(again, s.size); err != nil {
			return nil, err
		} else if again.end() != s.end() {
			return nil, s.damage(again.size, s.size, stop.broken+stop.alien)
		}
		state.expire()
		if s == seg {
			return state, nil
		}
	}
	return nil, fmt.Errorf("segment %s is not in the log", seg.path)
}

// TrimBefore makes offset the first one that can be read in a partition, and returns what then is the first one: the
// committed end bounds it, and it never goes back. The bytes go with their segments.
func (j *Journal) TrimBefore(id uint32, offset int64) (start int64, err error) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return 0, err
	}
	low, end := j.Bounds(id)
	if offset < 0 || offset > end {
		return low, &RangeError{Partition: id, Offset: offset, Start: low, End: end}
	}
	if offset <= low {
		return low, nil
	}
	old := j.start.starts
	j.start.starts = maps.Clone(old)
	j.start.starts[id] = offset
	if err := j.start.write(); errors.Is(err, ErrDiskFull) {
		j.start.starts = old
		return low, err
	} else if err != nil {
		return low, j.fail(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index.parts[id].start = offset
	return offset, nil
}
