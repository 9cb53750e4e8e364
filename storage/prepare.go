package storage

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// In the mode Durable the blocks that frames will go to are written once before, with zeroes, and synced. A write to
// blocks that were only allocated makes the sync that follows write the file system's own journal too; it takes twice
// the time and twice the CPU (docs/decisions/20261130-segment-prealloc.md). In the mode Replicated nobody waits for the
// sync, and writing twice would cost more than it saves: there blocks are only allocated ahead, as an allocation may wait
// for a sync that is under way.
const (
	// prepareFrom is how much a segment holds before anything is prepared for it: most journals stay small.
	prepareFrom = 256 << 10
	// prepareStep is how much is written at once, so that a sync of the log never waits for more of it.
	prepareStep = 1 << 20
	// fastSegment is how soon a segment must be full for two files to be kept ready behind it instead of one.
	fastSegment = 20 * time.Second
	// prepareRate is above how many bytes a second nothing is prepared: the disk is then busy enough with writing once.
	prepareRate = 64 << 20
)

// preparing is the part of space that the preparer uses. Guarded by space.mu.
type preparing struct {
	running bool      // there is a preparer
	region  bool      // it is writing beyond alloc of the current file; alloc must not move
	paused  bool      // until the next setCurrent
	settled sync.Cond // region became false
	since   time.Time // when the current segment became that
	from    int64     // what it held then
	ahead   int       // whole files to keep ready
}

// settle waits until alloc may be moved. The caller holds space.mu.
func (s *space) settle() {
	for s.prep.region {
		s.prep.settled.Wait()
	}
}

// pausePreparer keeps the preparer away from the current file until setCurrent.
func (s *space) pausePreparer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prep.paused = true
	s.settle()
}

// wakePreparer starts the preparer if there is something to prepare. The caller holds wmu and space.mu.
func (j *Journal) wakePreparer() {
	s := &j.space
	if s.prep.running || j.admitted() != nil || !j.wantsRegion() && !j.wantsSpare() {
		return
	}
	s.prep.running = true
	j.workers.Go(j.prepare)
}

// tooFast says whether the log grows so fast that preparing would take the bandwidth from it.
func (j *Journal) tooFast() bool {
	if j.o.Mode != Durable {
		return false // nothing is written
	}
	s := &j.space
	grown := time.Duration(s.used-s.prep.from) * time.Second / prepareRate
	return j.o.Now().Sub(s.prep.since) < grown
}

// wantsRegion says whether more of the current file should be made ready: as much as it holds, up to a bound.
func (j *Journal) wantsRegion() bool {
	s := &j.space
	return !s.prep.paused && s.used >= prepareFrom && s.alloc < j.o.SegmentBytes && s.alloc-s.used < min(s.used, maxStep) && !j.tooFast()
}

// wantsSpare says whether another file should be made ready for the segments to come.
func (j *Journal) wantsSpare() bool {
	s := &j.space
	if s.prep.paused || j.o.Spares < 0 || j.o.SegmentBytes < prepareStep || s.used <= j.o.SegmentBytes/2 || j.tooFast() {
		return false
	}
	ready := 0
	if s.spare != nil {
		ready++ // it may be small, but there is no other in front of it
	}
	for _, f := range s.old {
		if f.size >= j.o.SegmentBytes {
			ready++
		}
	}
	return ready < s.prep.ahead
}

// prepare works until there is nothing to prepare. What goes wrong with the current file fails the journal: the sync
// that failed may have been that of frames. What goes wrong elsewhere costs only speed.
func (j *Journal) prepare() {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	for j.Err() == nil && !j.isClosing() {
		var err error
		switch {
		case j.wantsRegion():
			err = j.prepareRegion()
		case j.wantsSpare():
			err = j.prepareSpare()
		default:
			s.prep.running = false
			return
		}
		if err != nil {
			s.prep.paused = true // until the next segment
			if !Refused(err) {
				j.o.Logger.Warn("blocks could not be written ahead; appends do without", "dir", j.dir, "error", err)
			}
		}
	}
	s.prep.running = false
}

func (j *Journal) isClosing() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// prepareRegion makes the next step of the current file ready. The caller holds space.mu, which is given up meanwhile.
func (j *Journal) prepareRegion() error {
	s := &j.space
	seg, from := s.cur, s.alloc
	to := min(from+prepareStep, j.o.SegmentBytes)
	if j.o.Mode != Durable {
		to = min(from+step(from), j.o.SegmentBytes)
	}
	seg.acquire() // it is the current one, which the log holds
	s.prep.region = true
	s.mu.Unlock()
	err := j.allocate(seg.file, from, to)
	full := errors.Is(err, ErrDiskFull)
	if err == nil && j.o.Mode == Durable {
		err = writeZeroes(seg.file, from, to)
	}
	seg.release()
	s.mu.Lock()
	s.prep.region = false
	s.prep.settled.Broadcast()
	switch {
	case full:
		return err
	case err != nil:
		return j.fail(err)
	case s.cur == seg:
		s.alloc = to
	}
	return nil
}

// prepareSpare makes a file for a segment to come. The caller holds space.mu, which is given up meanwhile.
func (j *Journal) prepareSpare() error {
	s := &j.space
	path, size := j.spareName(), j.o.SegmentBytes
	f, err := j.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	err = refusal(f.Allocate(0, size))
	for at := int64(0); j.o.Mode == Durable && at < size && err == nil && j.Err() == nil && !j.isClosing(); at += prepareStep {
		start := time.Now()
		if err = writeZeroes(f, at, min(at+prepareStep, size)); err == nil {
			j.rest(3 * time.Since(start))
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = j.fsys.Remove(path) // it was never used; the error that counts is the first
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = append(s.old, spareFile{path, size})
	return nil
}

// rest leaves the disk to others for a while.
func (j *Journal) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-j.closing:
	case <-j.failedCh:
	}
}

// writeZeroes writes and syncs a range.
func writeZeroes(f vfs.File, from, to int64) error {
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		return refusal(err)
	}
	return f.Sync()
}
