package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
)

// Front is what a log links to where its front was removed: all that a replica needs in place of what is gone. It is
// the content of the group's synthetic snapshot.
type Front struct {
	Position    uint64 // journal position of the first frame that is kept
	Index, Term uint64 // raft's, of the frame before; 0 if nothing was removed
	ConfigIndex uint64
	Config      []byte // raft's configuration as of Index
	State       []byte // for Reset
}

// Front describes the front of the log.
func (j *Journal) Front() Front {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	t := j.start.front
	state := t.encode(nil)
	return Front{
		Position: t.pos, Index: t.index, Term: t.term, ConfigIndex: t.configIndex, Config: t.config,
		State: put32(state, crc32.Checksum(state, castagnoli)),
	}
}

// Sealed describes the place where the last segment started when the journal was opened; without the state for Reset.
// All before it was on stable storage.
func (j *Journal) Sealed() Front {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	return j.sealed
}

// ErrHasMore refuses to begin a log anew that goes on behind the place where it should begin.
var ErrHasMore = errors.New("the log has all of what it should begin behind, and goes on there")

// Reset throws the log away and starts it anew behind the front that another replica sent, of which all is committed.
// Segments go from the last one, so that an interruption leaves a shorter log. A log that has that front already keeps
// what lies behind it, which may have been acknowledged: the error is ErrHasMore, and nothing was done. Until the new
// front is there readers see what they saw, and no partition's end ever goes back.
func (j *Journal) Reset(state []byte) error {
	if len(state) < 4 {
		return errShort
	}
	body := state[:len(state)-4]
	d := &decoder{buf: state[len(state)-4:]}
	if crc32.Checksum(body, castagnoli) != d.u32() {
		return fmt.Errorf("state of the log's front fails its checksum")
	}
	front, err := decodeTail(&decoder{buf: body})
	if err != nil {
		return err
	}
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	if j.goesOnBehind(front) {
		return fmt.Errorf("beginning the log behind entry %d: %w", front.index, ErrHasMore)
	}
	if err := j.reset(front); err != nil {
		return j.fail(err)
	}
	return nil
}

// goesOnBehind says whether the log has a front, or a later one, and entries behind it.
func (j *Journal) goesOnBehind(front *tail) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	at, _, ok := j.anchor(front.index, front.term)
	return ok && (at > front.index || j.index.lastIndex() > at)
}

// Anchor returns the entry by which a leader is to know this log that would have it begin behind the entry index, of
// term, as the leader has nothing before that any more: that entry, if the log has it, or the one before the log's own
// front, if that is later. Either is committed, as the leader's is. Without one nothing in the log can count.
func (j *Journal) Anchor(index, term uint64) (at, of uint64, ok bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.anchor(index, term)
}

// anchor is Anchor. A log of commands has no front that raft knows, but snapshots. The caller holds mu.
func (j *Journal) anchor(index, term uint64) (at, of uint64, ok bool) {
	if f := &j.index.front; f.index > 0 && index <= f.index && !j.o.Commands {
		return f.index, f.term, index < f.index || term == f.term
	}
	seg, n, ok := j.index.find(index)
	if !ok || index < j.index.first || uint64(seg.entries[n].term) != term {
		return 0, 0, false
	}
	return index, term, true
}

func (j *Journal) reset(front *tail) error {
	j.flushMu.Lock()
	defer j.flushMu.Unlock()
	j.space.pausePreparer()
	if err := j.unmark(); err != nil {
		return err
	}
	j.mu.RLock()
	old := j.index.segs
	j.mu.RUnlock()
	for i := len(old) - 1; i >= 0; i-- {
		j.cache.remove(old[i])
		j.removeIndexes(old[i].path)
		if err := j.fsys.Remove(old[i].path); err != nil {
			return err
		}
		if err := j.fsys.SyncDir(j.dir); err != nil {
			return err
		}
	}
	if err := j.removeSpares(); err != nil { // they may hold frames of the positions to come
		return err
	}
	j.start.front = front
	if err := j.start.write(); err != nil {
		return err
	}
	l, err := loadLog(j, nil, marked{})
	if err != nil {
		return err
	}
	if err := j.install(l); err != nil {
		return err
	}
	for _, s := range old {
		s.discard = closeSegment
		s.release()
	}
	j.mu.Lock()
	j.index.raftFront = front.index
	j.mu.Unlock()
	j.committed.Store(front.pos)
	j.changed()
	return nil
}

// unmark takes the mark on the disk back before everything that it vouches for is removed; readers still have the files.
func (j *Journal) unmark() error {
	j.markMu.Lock()
	defer j.markMu.Unlock()
	return j.mark.setSynced(0, markCutting)
}

func (j *Journal) removeSpares() error {
	j.space.close()
	j.space.mu.Lock()
	j.space.old, j.space.spareLen = nil, 0
	j.space.mu.Unlock()
	names, err := j.fsys.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, sparePrefix) {
			if err := j.fsys.Remove(filepath.Join(j.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
