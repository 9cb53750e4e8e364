package storage

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// surveyBytes is how much of a segment is read at a time.
const surveyBytes = 1 << 20

// Check reads one sealed segment from the disk and checks every byte of it: the checksums of its frames, and that each is
// linked to the one before, from the end of the segment before to the end that is known. It takes the first that ends
// behind the journal position from and is committed, and returns where the next one begins; 0 when there is none to check.
// A *DamageError covers all that is damaged of the segment; Damages has it too. pace, called before so many bytes are
// read, bounds the rate; its error ends the check.
func (j *Journal) Check(from uint64, pace func(bytes int) error) (next uint64, err error) {
	seg := j.committedFrom(from)
	if seg == nil {
		return 0, nil
	}
	defer seg.release()
	d, err := j.survey(seg, pace)
	if err == nil && d != nil {
		return seg.end(), d
	}
	return seg.end(), err
}

// committedFrom returns the first sealed segment behind a position, with a reference, if it is committed; else nil.
func (j *Journal) committedFrom(from uint64) *segment {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for i, s := range j.index.segs {
		if s.end() <= from {
			continue
		}
		if i == len(j.index.segs)-1 || s.end() > j.committed.Load() {
			return nil
		}
		s.acquire()
		return s
	}
	return nil
}

// surveyed is what was found so far of a sealed segment.
type surveyed struct {
	seg      *segment
	crc      uint32 // of the frame before
	known    bool   // crc is right
	from, to int64  // file offsets of what is damaged; from is -1 if nothing is
	reason   string
}

// survey reads a sealed segment and says what of it is damaged; nil: nothing is. The damage is a whole number of frames.
func (j *Journal) survey(seg *segment, pace func(bytes int) error) (*DamageError, error) {
	s := &surveyed{seg: seg, crc: seg.prev, known: true, from: -1}
	cold := j.coldReads(seg)
	defer cold.end()
	var buf []byte
	for i := 0; i < len(seg.entries); {
		at, k := int64(seg.entries[i].rel), i+1
		for k < len(seg.entries) && seg.entryEnd(k)-at <= surveyBytes {
			k++
		}
		n := int(seg.entryEnd(k-1) - at)
		if err := pace(n); err != nil {
			return nil, err
		}
		if cap(buf) < n {
			buf = make([]byte, max(n, surveyBytes))
		}
		err := cold.read(buf[:n], at)
		if err != nil && !unreadable(err) {
			return nil, fmt.Errorf("reading %s at %d: %w", seg.path, at, err)
		}
		for ; i < k; i++ {
			rel, end := int64(seg.entries[i].rel), seg.entryEnd(i)
			frame := buf[rel-at : end-at]
			if err != nil { // one of them cannot be read
				if err := readAll(seg.file, frame, rel); err != nil {
					s.bad(i, "it cannot be read: "+err.Error())
					continue
				}
			}
			s.add(i, frame)
		}
	}
	return s.finish(), nil
}

// unreadable says whether a disk's error is about bytes that it does not have any more.
func unreadable(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// add judges the bytes of frame i.
func (s *surveyed) add(i int, frame []byte) {
	h, reason := s.seg.check(i, frame)
	if reason != "" {
		s.bad(i, reason)
		return
	}
	if s.known && h.prevCRC != s.crc {
		reason = "it does not link to the frame before it"
		s.bad(i, reason)
		if i > 0 { // either may be the one that does not belong here
			s.bad(i-1, reason)
		}
	}
	s.crc, s.known = h.crc, true
}

// check says what is wrong with the bytes of frame i, or "".
func (s *segment) check(i int, frame []byte) (h frameHeader, reason string) {
	e := s.entries[i]
	h, ok := parseFrameHeader(frame, s.base+uint64(e.rel))
	if !ok || int(h.length) != len(frame) || h.index != s.first+uint64(i) || uint32(h.term) != e.term || !h.checkDirectory(frame) {
		return h, "frame header is damaged"
	}
	return h, h.checkPayload(frame)
}

// bad notes that frame i is not what was written.
func (s *surveyed) bad(i int, reason string) {
	if s.from < 0 {
		s.from, s.reason = int64(s.seg.entries[i].rel), reason
	}
	s.from = min(s.from, int64(s.seg.entries[i].rel))
	s.to = max(s.to, s.seg.entryEnd(i))
	s.known = false
}

func (s *surveyed) finish() *DamageError {
	if n := len(s.seg.entries); n > 0 && s.known && s.crc != s.seg.lastCRC {
		s.bad(n-1, "it is not the frame that the segment ends with")
	}
	if s.from < 0 {
		return nil
	}
	return s.seg.damage(s.from, s.to, s.reason)
}
