package storage

// Pressure is what a journal could give back to a disk that is nearly full.
type Pressure struct {
	// Held is how many bytes retention would have removed if no reader held them.
	Held int64
	// Oldest is the time of the last append to the first segment that may be removed, by the leader's clock in
	// microseconds; 0 if there is none.
	Oldest int64
}

// Pressure returns what the journal could give back now.
func (j *Journal) Pressure() (p Pressure) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if len(j.index.segs) == 0 {
		return p
	}
	size := j.index.bytes()
	for _, seg := range j.index.segs[:len(j.index.segs)-1] {
		if !j.tooMuch(size, seg) && !j.tooOld(seg) || seg.end() > j.committed.Load() {
			break
		}
		if size -= seg.size; j.held(seg) || p.Held > 0 {
			p.Held += seg.size
		}
	}
	if n := j.removable(func(*segment) bool { return true }); n > 0 {
		p.Oldest = j.index.segs[0].lastStamp
	}
	return p
}

// DropSpares gives the files that are kept for segments to come back to the disk.
func (j *Journal) DropSpares() {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if j.writable() == nil {
		j.dropSpares()
	}
}

// Shed removes segments from the front before their time until about n bytes are free, and returns how many it freed.
// What a reader holds stays, and so does the segment that is written to.
func (j *Journal) Shed(n int64) (freed int64, err error) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return 0, err
	}
	j.mu.RLock()
	count := j.removable(func(seg *segment) bool {
		if freed >= n {
			return false
		}
		freed += seg.size
		return true
	})
	freed = 0
	for _, seg := range j.index.segs[:count] {
		freed += seg.size
	}
	j.mu.RUnlock()
	if count == 0 {
		return 0, nil
	}
	if err := j.trim(count); err != nil {
		return 0, err
	}
	j.dropSpares()
	return freed, nil
}
