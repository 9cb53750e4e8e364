package storage

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

const (
	minStep = 1 << 20 // files grow by at least so much, so that a small journal stays small
	maxStep = 8 << 20 // and by at most so much
	// maxHeadroom bounds what stays allocated beyond what appends reserve: raft's own entries must never meet a full disk.
	maxHeadroom = 64 << 10
)

// space knows what is allocated for frames to come. Disk space is taken before a proposal enters raft, so that a full
// disk refuses a proposal and never a write. Reserved bytes lie either in the current segment or all in the spare
// file that becomes the next one.
type space struct {
	mu       sync.Mutex // guards all below; held during I/O
	cur      *segment
	alloc    int64 // allocated of cur's file
	used     int64 // of cur's file; follows cur.size
	reserved int64
	spare    vfs.File // allocated for the next segment, or nil
	spareAt  string
	spareLen int64
	old      []spareFile // of removed segments, or made ahead
	names    int         // for new spare files
	prep     preparing
}

// spareFile is a file for a segment to come.
type spareFile struct {
	path string
	size int64
}

// adopt takes a file that was left from before for reuse.
func (s *space) adopt(fsys vfs.FS, path string) error {
	if len(s.old) >= 8 {
		return fsys.Remove(path)
	}
	st, err := fsys.Stat(path)
	if err == nil {
		s.old = append(s.old, spareFile{path, st.Size()})
	}
	return err
}

func (s *space) setCurrent(seg *segment, alloc int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.cur, s.alloc, s.used = seg, alloc, seg.size
	s.prep.ahead = 1
	if now.Sub(s.prep.since) < fastSegment {
		s.prep.ahead = 2
	}
	s.prep.paused, s.prep.since, s.prep.from = false, now, seg.size
}

func (s *space) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare != nil {
		_ = s.spare.Close() // holds nothing yet
		s.spare = nil
	}
}

// frameBytes bounds the size of a frame of n batches with so many bytes in all.
func frameBytes(n int, bytes int64) int64 {
	return int64(aligned(frameHeaderBytes + n*dirEntryBytes + int(bytes)))
}

// Reserve takes disk space for n bytes of frames to come. It fails with ErrDiskFull or ErrNoFiles if there is none;
// then nothing happened. Unreserve gives it back when they are stored or given up.
func (j *Journal) Reserve(n int64) error {
	if err := j.writable(); err != nil {
		return err
	}
	if err := j.admitted(); err != nil {
		return err
	}
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	if err := j.ensure(n); Refused(err) {
		return err
	} else if err != nil {
		return j.fail(err)
	}
	j.space.reserved += n
	return nil
}

// admitted asks whether the disk may be filled further.
func (j *Journal) admitted() error {
	if j.o.Admit == nil {
		return nil
	}
	return j.o.Admit()
}

// Unreserve ends a reservation.
func (j *Journal) Unreserve(n int64) {
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	j.space.reserved -= n
}

// CommandBytes is what to reserve for a command of n bytes.
func CommandBytes(n int) int64 { return frameBytes(0, int64(n)) }

func (j *Journal) headroom() int64 { return min(maxHeadroom, j.o.SegmentBytes/4) }

// ensure allocates n bytes beyond what is reserved. The caller holds space.mu.
func (j *Journal) ensure(n int64) error {
	s := &j.space
	need := s.reserved + n + j.headroom()
	if s.used+need <= max(s.alloc, j.o.SegmentBytes) {
		if s.used+need > s.alloc {
			s.settle()
		}
		if s.used+need <= s.alloc {
			return nil
		}
		to := min(max(s.used+need, s.alloc+step(s.alloc)), max(s.used+need, j.o.SegmentBytes))
		if err := j.allocate(s.cur.file, s.alloc, to); err != nil {
			return err
		}
		s.alloc = to
		return nil
	}
	if s.spare == nil {
		if err := j.makeSpare(); err != nil {
			return err
		}
	}
	if need <= s.spareLen {
		return nil
	}
	to := max(need, min(j.o.SegmentBytes, s.spareLen+step(s.spareLen)))
	if err := j.allocate(s.spare, s.spareLen, to); err != nil {
		return err
	}
	s.spareLen = to
	return nil
}

func step(alloc int64) int64 { return min(max(alloc, minStep), maxStep) }

// allocate makes f's blocks up to the size to real.
func (j *Journal) allocate(f vfs.File, from, to int64) error {
	return refusal(f.Allocate(from, to-from))
}

// makeSpare opens the file of the next segment: one of a removed segment, or a new one.
func (j *Journal) makeSpare() error {
	s := &j.space
	path, rest := "", s.old
	if n := len(s.old); n > 0 {
		slices.SortStableFunc(s.old, func(a, b spareFile) int { return cmp.Compare(a.size, b.size) })
		path, rest = s.old[n-1].path, s.old[:n-1]
	} else {
		path = j.spareName()
	}
	f, err := j.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, refusal(err))
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close() // holds nothing yet
		return err
	}
	s.old, s.spare, s.spareAt, s.spareLen = rest, f, path, size&^(frameAlign-1)
	return nil
}

// dropSpares gives the files of removed segments back to the disk.
func (j *Journal) dropSpares() {
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	for _, f := range j.space.old {
		if err := j.fsys.Remove(f.path); err != nil {
			j.o.Logger.Warn("a spare file stays until the next start", "file", f.path, "error", err)
		}
	}
	j.space.old = nil
}

// spareName makes a name no file has. The caller holds space.mu.
func (j *Journal) spareName() string {
	for {
		j.space.names++
		path := filepath.Join(j.dir, fmt.Sprintf("%s%d", sparePrefix, j.space.names))
		if _, err := j.fsys.Stat(path); err != nil {
			return path
		}
	}
}

// recycle keeps the file of a removed segment for reuse, or removes it.
func (j *Journal) recycle(seg *segment) {
	size, _ := seg.file.Size() // unknown is as good as small
	_ = seg.file.Close()       // its data is given up
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	select {
	case <-j.closing: // a reader held it for longer than the journal was open; the directory may be another's now
		return
	default:
	}
	var err error
	if len(j.space.old) < j.o.Spares {
		path := j.spareName()
		if err = j.fsys.Rename(seg.path, path); err == nil {
			j.space.old = append(j.space.old, spareFile{path, size})
		}
	} else {
		err = j.fsys.Remove(seg.path)
	}
	if err != nil {
		j.o.Logger.Warn("a removed segment's file stays until the next start", "file", seg.path, "error", err)
	}
}
