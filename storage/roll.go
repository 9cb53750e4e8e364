package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/internal/vfs"
)

// roll seals the current segment and starts the next one, with room for a frame of n bytes. Nothing may be built that
// is not written. An error of [Refused] says that all is as it was.
func (j *Journal) roll(n int64) error {
	seg := j.current()
	if len(seg.entries) == 0 { // it would get the same name again
		return j.growEmpty(n)
	}
	if err := j.settle(seg, seg.end(), true); err != nil { // a sealed segment is on stable storage as a whole
		return err
	}
	next, alloc, err := j.nextSegment(seg.end(), n)
	if err != nil {
		return err
	}
	j.sealCurrent(seg, next)
	j.space.setCurrent(next, alloc, j.o.Now())
	if err := j.start.reserve(j.tail); err != nil && !errors.Is(err, ErrDiskFull) { // then a trim has to find the room
		return err
	}
	return nil
}

// rollOr is roll in the middle of what raft stores as one. Where frames of that are written since the log ended at start, or
// raft would not believe a refusal as the log was just cut, no error can be given any more that leaves all as it was: a segment
// that cannot begin then lets the current one grow.
func (j *Journal) rollOr(n int64, start uint64) error {
	err := j.roll(n)
	if !Refused(err) || j.tail.pos == start && !j.justCut {
		return err
	}
	if full := j.outgrow(n); full != nil {
		return fmt.Errorf("%w; nor could the current segment grow: %w", err, full)
	}
	return nil
}

// outgrow makes room for n bytes, and for all that is reserved, in the current segment. Where the disk is full that is the
// room which the spare file has.
func (j *Journal) outgrow(n int64) error {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	to := s.used + s.reserved + n + j.headroom()
	if to <= s.alloc {
		return nil
	}
	err := j.allocate(s.cur.file, s.alloc, to)
	if errors.Is(err, ErrDiskFull) && s.spare != nil {
		_ = s.spare.Close() // holds nothing yet
		s.spare, s.spareLen = nil, 0
		if err = j.fsys.Remove(s.spareAt); err == nil {
			err = j.allocate(s.cur.file, s.alloc, to)
		}
	}
	if err != nil {
		return err
	}
	s.alloc = to
	return nil
}

// growEmpty makes room for n bytes in a current segment that holds nothing.
func (j *Journal) growEmpty(n int64) error {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	need := n + j.headroom()
	if need <= s.alloc {
		return nil
	}
	if err := j.allocate(s.cur.file, s.alloc, need); err != nil {
		return err
	}
	s.alloc = need
	return nil
}

// nextSegment puts a spare file at position, or a new one if there is none with room.
func (j *Journal) nextSegment(position uint64, n int64) (*segment, int64, error) {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == nil {
		if err := j.makeSpare(); err != nil {
			return nil, 0, err
		}
	}
	if need := n + j.headroom(); s.spareLen < need {
		if err := j.allocate(s.spare, s.spareLen, need); err != nil {
			return nil, 0, err
		}
		s.spareLen = need
	}
	path := filepath.Join(j.dir, segName(position))
	if err := j.fsys.Rename(s.spareAt, path); err != nil {
		return nil, 0, fmt.Errorf("starting segment %s: %w", path, refusal(err))
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		if err = refusal(err); errors.Is(err, ErrNoFiles) { // the directory was not opened, and nothing is written
			if back := j.fsys.Rename(path, s.spareAt); back != nil {
				return nil, 0, fmt.Errorf("starting segment %s: %v; taking it back: %w", path, err, back)
			}
		}
		return nil, 0, fmt.Errorf("starting segment %s: %w", path, err)
	}
	seg := &segment{base: position, path: path, file: s.spare, prev: j.current().lastCRC, lastCRC: j.current().lastCRC, discard: closeSegment, report: j.report}
	seg.acquire()
	alloc := s.spareLen
	s.spare = nil
	return seg, alloc, nil
}

// sealCurrent closes a segment's index and puts next behind it.
func (j *Journal) sealCurrent(seg, next *segment) {
	j.tail.expire()
	j.mu.Lock()
	x := buildIndex(seg, j.index.parts, j.tail, j.app.aborted)
	seg.table.Store(x.table)
	j.index.segs = append(j.index.segs, next)
	j.mu.Unlock()
	j.app.aborted = nil
	j.cache.add(seg)
	j.writeIndex(x)
}

// buildIndex makes the index of a segment that is full. The caller holds mu.
func buildIndex(seg *segment, parts map[uint32]*partition, end *tail, aborted []abortedIn) *segIndex {
	t, rows := seal(seg, parts)
	return &segIndex{seg: seg, spans: rows, aborted: aborted, end: end, table: t, locs: len(t.locs), blocks: len(t.blocks)}
}

// writeIndex writes the index file of a sealed segment. It is a cache: without it the segment is read at the next
// start.
func (j *Journal) writeIndex(x *segIndex) {
	path := idxPath(x.seg.path)
	err := writeCache(j.fsys, path, x.encode())
	if err != nil {
		j.o.Logger.Warn("index file not written; the next start reads the segment instead", "file", path, "error", err)
	}
}

func writeCache(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
