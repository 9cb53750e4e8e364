package storage

import (
	"github.com/hashicorp/raft"
)

// Link is the chain of checksums behind a raft entry. Two replicas that have the same value there have the same bytes in
// all frames up to it.
type Link struct {
	Index    uint64 `json:"index"`
	Position uint64 `json:"position"` // behind the entry's frame
	CRC      uint32 `json:"crc"`
}

// Links returns the links at the ends of sealed and committed segments behind a raft entry, in order, at most so many.
func (j *Journal) Links(after uint64, most int) (all []Link) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if len(j.index.segs) == 0 {
		return nil
	}
	for _, s := range j.index.segs[:len(j.index.segs)-1] {
		if len(all) == most || s.end() > j.committed.Load() {
			break
		}
		if len(s.entries) > 0 && s.last() > after {
			all = append(all, Link{s.last(), s.end(), s.lastCRC})
		}
	}
	return all
}

// LinkAt returns the link behind a committed raft entry. The error is raft.ErrLogNotFound if it is not there, or not known
// to be committed, else a *DamageError or that of the disk.
func (j *Journal) LinkAt(index uint64) (Link, error) {
	j.mu.RLock()
	seg, n, ok := j.index.find(index)
	if !ok || seg.base+uint64(seg.entryEnd(n)) > j.committed.Load() {
		j.mu.RUnlock()
		return Link{}, raft.ErrLogNotFound
	}
	rel, end := int64(seg.entries[n].rel), seg.entryEnd(n)
	if l := (Link{index, seg.base + uint64(end), seg.lastCRC}); n == len(seg.entries)-1 {
		j.mu.RUnlock()
		return l, nil
	}
	seg.acquire()
	j.mu.RUnlock()
	defer seg.release()
	frame, err := readFrame(seg, rel, end)
	if err != nil {
		return Link{}, err
	}
	h, _ := parseFrameHeader(frame, seg.base+uint64(rel))
	return Link{index, seg.base + uint64(end), h.crc}, nil
}

// Stretch fills buf with the bytes of the log from a journal position on, for another replica that mends its own: positions
// are the same on all. They are not checked here, as the other one has to do it anyway. It gives what is committed, or
// sealed, and says whether it is committed as far as is known here. The error is raft.ErrLogNotFound if not all of it is
// there.
func (j *Journal) Stretch(position uint64, buf []byte) (committed bool, err error) {
	committed = position+uint64(len(buf)) <= j.committed.Load()
	for len(buf) > 0 {
		n, err := j.stretch(position, buf)
		if err != nil {
			return false, err
		}
		position, buf = position+uint64(n), buf[n:]
	}
	return committed, nil
}

// stretch reads what of it lies in one segment.
func (j *Journal) stretch(position uint64, buf []byte) (n int, err error) {
	j.mu.RLock()
	seg, last := j.index.segmentAt(position)
	if seg == nil || last && position+uint64(len(buf)) > j.committed.Load() {
		j.mu.RUnlock()
		return 0, raft.ErrLogNotFound
	}
	end := seg.end()
	seg.acquire()
	j.mu.RUnlock()
	defer seg.release()
	n = int(min(uint64(len(buf)), end-position))
	if err := seg.read(buf[:n], int64(position-seg.base)); err != nil {
		return 0, err
	}
	return n, nil
}

// segmentAt returns the segment that a journal position lies in, nil if none does, and whether it is the one being written
// to. The caller holds mu.
func (x *index) segmentAt(position uint64) (seg *segment, last bool) {
	for i, s := range x.segs {
		if s.base <= position && position < s.end() {
			return s, i == len(x.segs)-1
		}
	}
	return nil, false
}
