package storage

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// A front that cannot be cut is tried again for a while: raft goes on as if it had been.
const (
	cutTries = 100
	cutPause = 100 * time.Millisecond
)

// ReadyToCut takes what is needed for cutting off all entries of a command log, as a snapshot of a later one is to take
// their place: raft 1.8.0 goes on with the snapshot also where the log then could not be cut. ErrDiskFull and ErrNoFiles say that
// there is no room for it now, and nothing happened.
func (j *Journal) ReadyToCut() error {
	if err := j.writable(); err != nil {
		return err
	}
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == nil {
		if err := j.makeSpare(); err != nil {
			return err
		}
	}
	need := s.reserved + j.headroom()
	if s.spareLen >= need {
		return nil
	}
	if err := j.allocate(s.spare, s.spareLen, need); err != nil {
		return err
	}
	s.spareLen = need
	return nil
}

// firstKey holds the lowest raft index of a command log whose front raft cut off within a segment.
const firstKey = "daybook.first"

// firstEntry is what firstKey holds, 0 if nothing.
func (s *startFile) firstEntry() uint64 {
	v, ok := s.values[firstKey]
	if !ok {
		return 0
	}
	return (&decoder{buf: v}).u64()
}

// endsEarly says why a log that ends with an entry is not whole, "" if nothing tells: entries are deleted only in front of one
// that is there.
func (s *startFile) endsEarly(end uint64) string {
	first := s.firstEntry()
	if end >= first {
		return ""
	}
	return fmt.Sprintf("the log ends with entry %d, and began with entry %d: what the disk had said to have is gone", end, first)
}

// DeleteRange implements raft.LogStore. A journal's front goes by retention alone, so all it may cut is the end, which
// was never committed; a command log also gives up its front after a snapshot.
func (j *Journal) DeleteRange(low, high uint64) error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	j.mu.RLock()
	first, last := j.index.firstIndex(), j.index.lastIndex()
	j.mu.RUnlock()
	var err error
	switch {
	case last == 0 || low > high || high < first:
		return nil
	case low > first && high >= last:
		err = j.cutTail(low)
	case low <= first && j.o.Commands:
		err = j.cutFront(min(high, last), last)
	default:
		err = fmt.Errorf("raft asked to delete entries %d to %d of %d to %d, which would delete data", low, high, first, last)
	}
	if err != nil {
		return j.fail(err)
	}
	return nil
}

// cutFront removes the entries up to high of a command log.
func (j *Journal) cutFront(high, last uint64) error {
	if high == last && len(j.current().entries) > 0 { // the log goes on behind a snapshot, at any index
		err := j.roll(0)
		for tries := 0; Refused(err) && tries < cutTries; tries++ { // ReadyToCut has what it needs, but for what the file system itself takes
			j.rest(cutPause)
			err = j.roll(0)
		}
		if err != nil {
			return err
		}
	}
	first := high + 1
	if high == last {
		first = 0 // raft may go on below, behind a snapshot that is older than what this member had
	}
	if err := j.setValue(firstKey, put64(nil, first)); err != nil {
		return err
	}
	j.mu.Lock()
	j.index.first = first
	n := 0
	for n < len(j.index.segs)-1 && j.index.segs[n].last() <= high {
		n++
	}
	j.mu.Unlock()
	if n == 0 {
		return nil
	}
	if high < last {
		return j.trim(n)
	}
	if err := j.trimTo(n, func(front *tail) { front.index, front.term = 0, 0 }); err != nil {
		return err
	}
	j.tail.index, j.tail.term = 0, 0
	return nil
}

// cutTail removes the entries from low on: first the mark goes down, then whole segments go from the last one, then
// the headers of the frames in the one that stays are zeroed. An interruption leaves a longer log, which raft cuts
// again. Then the log is read anew, by the code of a start.
func (j *Journal) cutTail(low uint64) error {
	j.mu.RLock()
	seg, n, ok := j.index.find(low)
	segs := append([]*segment(nil), j.index.segs...)
	j.mu.RUnlock()
	if !ok {
		return raft.ErrLogNotFound
	}
	j.flushMu.Lock()
	defer j.flushMu.Unlock()
	j.space.pausePreparer() // it would go on where the log is read anew
	cut := int64(seg.entries[n].rel)
	if seg.base+uint64(cut) < j.committed.Load() {
		return fmt.Errorf("raft asked to delete entry %d, which is committed", low)
	}
	if err := j.lowerDurable(seg.base + uint64(cut)); err != nil {
		return err
	}
	for i := len(segs) - 1; segs[i] != seg; i-- {
		j.removeIndexes(segs[i].path)
		if err := j.fsys.Remove(segs[i].path); err != nil {
			return err
		}
		if err := j.fsys.SyncDir(j.dir); err != nil {
			return err
		}
	}
	var zero [frameHeaderBytes]byte
	for _, e := range seg.entries[n:] {
		if _, err := seg.file.WriteAt(zero[:], int64(e.rel)); err != nil {
			return fmt.Errorf("cutting %s: %w", seg.path, err)
		}
	}
	if err := seg.file.Sync(); err != nil {
		return fmt.Errorf("cutting %s: %w", seg.path, err)
	}
	j.justCut = true
	return j.reload(seg)
}

// lowerDurable takes the mark back before frames above end are destroyed.
func (j *Journal) lowerDurable(end uint64) error {
	j.markMu.Lock()
	defer j.markMu.Unlock()
	if end >= j.durable.Load() {
		end = j.durable.Load()
	}
	if err := j.mark.setSynced(end, markCutting); err != nil {
		return err
	}
	j.durable.Store(end)
	return nil
}

// reload builds the index anew after the end of the log was cut within the segment last.
func (j *Journal) reload(last *segment) error {
	j.mu.RLock()
	var bases []uint64
	old := j.index.segs
	for _, s := range old {
		if s.base <= last.base {
			bases = append(bases, s.base)
		}
	}
	j.mu.RUnlock()
	l, err := loadLog(j, bases, marked{j.durable.Load(), markCutting})
	if err != nil {
		return fmt.Errorf("reading the log after its end was cut: %w", err)
	}
	if err := j.install(l); err != nil {
		return err // readers go on with the old index
	}
	for _, s := range old {
		j.cache.remove(s)
		s.discard = closeSegment
		s.release()
	}
	return nil
}
