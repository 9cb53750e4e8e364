package nginx

import (
	"bytes"
	"time"
)

// verdict says what a file is that nobody has seen before.
type verdict int

const (
	isNew   verdict = iota // to be read
	isCopy                 // of what was read
	notSure                // to be looked at again at the next scan
)

// copyTime is how long a copy may take between two writes.
const copyTime = 5 * time.Second

// copied says whether a candidate is a copy of a file of the series, as copytruncate
// and gzip make them. Only a rotated name can be. Where the copy has more than was
// read of a file that is finished (it was truncated), reading goes on in the copy.
func (s *scan) copied(c candidate) (verdict, error) {
	if c.live() {
		return isNew, nil
	}
	opened, err := c.open()
	if err != nil {
		return notSure, err
	}
	defer func() {
		if opened != nil {
			_ = opened.Close()
		}
	}()
	start, err := readFull(opened, 0, headLength)
	if err != nil {
		return notSure, nil // a compressed file that is being written
	}
	for _, f := range s.files {
		v, err := s.compare(f, c, opened, start)
		if err != nil {
			return notSure, nil
		}
		switch v {
		case isCopy:
			if s.adopt(f, c, opened) {
				opened = nil // it is the file's now
				return isCopy, nil
			}
			s.pass(c)
			return isCopy, nil
		case notSure:
			return notSure, nil
		}
	}
	return isNew, nil
}

// compare says whether a candidate that begins with start is a copy of f.
func (s *scan) compare(f *file, c candidate, opened content, start []byte) (verdict, error) {
	if f.frozen != nil {
		same, err := f.frozen.holds(opened)
		if same {
			return isCopy, err
		}
		return isNew, err
	}
	head := f.head
	if len(head) == 0 && f.content != nil {
		var err error
		if head, err = readFull(f.content, 0, headLength); err != nil {
			return notSure, err
		}
	}
	n := min(len(head), len(start))
	if n == 0 || !bytes.Equal(head[:n], start[:n]) {
		if len(start) == 0 && s.now.Sub(c.changed) < copyTime {
			return notSure, nil // it has just been made
		}
		return isNew, nil
	}
	if !f.done {
		return notSure, nil // whether it is a copy shows when f is truncated or finished
	}
	if !isCompressed(c.path) && c.size < f.offset {
		if s.now.Sub(c.changed) < copyTime {
			return notSure, nil // it is still being copied
		}
		if n < headLength {
			return isNew, nil
		}
		return isCopy, nil
	}
	if isCompressed(c.path) && sizeMatches(c.path, f.offset) {
		return isCopy, nil
	}
	same, err := f.state().holds(opened)
	if err != nil {
		return notSure, err
	}
	if !same {
		return isNew, nil
	}
	return isCopy, nil
}

// adopt lets a finished file go on in its copy, if that has more. Of a file that was
// never truncated it has not: its descriptor was read to the end.
func (s *scan) adopt(f *file, c candidate, opened content) bool {
	if isCompressed(c.path) && sizeMatches(c.path, f.offset) || !isCompressed(c.path) && c.size <= f.offset {
		return false
	}
	f.content, f.key, f.path = opened, c.key, c.path
	if f.frozen != nil {
		if err := f.restore(*f.frozen); err != nil {
			f.content, f.key = nil, fileKey{}
			return false
		}
		f.frozen = nil
	}
	f.done, f.rotatedAt, f.grownAt, f.looked, s.changed = false, s.now, s.now, -1, true
	return true
}
