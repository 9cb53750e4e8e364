package storage

import (
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

// Reset throws the log away and starts it anew behind the front that another replica sent. Segments go from the last
// one, so that an interruption leaves a shorter log.
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
	if err := j.reset(front); err != nil {
		return j.fail(err)
	}
	return nil
}

func (j *Journal) reset(front *tail) error {
	j.flushMu.Lock()
	defer j.flushMu.Unlock()
	j.space.pausePreparer()
	if err := j.lowerDurable(0); err != nil {
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
	j.committed.Store(0)
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
