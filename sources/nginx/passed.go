package nginx

import (
	"errors"
)

// pass notes that the candidate is not to be read.
func (s *scan) pass(c candidate) {
	p := &passed{candidate: c}
	if opened, err := c.open(); err == nil {
		if head, err := readFull(opened, 0, headLength); err == nil {
			p.head = fingerprintOf(head)
		}
		_ = opened.Close()
	}
	s.seen[c.key] = p
}

// passedBefore reports whether the candidate is one that is not to be read, and not
// another file with its key.
func (s *scan) passedBefore(c candidate) (bool, error) {
	p, ok := s.seen[c.key]
	if !ok {
		return false, nil
	}
	if c.size == p.size && c.changed.Equal(p.changed) {
		p.path = c.path
		return true, nil
	}
	opened, err := c.open()
	if errors.Is(err, errMoved) {
		return false, err
	}
	if s.problem(c.path, err); err != nil {
		return true, nil // next time
	}
	same, err := p.head.standsAt(opened, 0)
	if err = errors.Join(ignoreEnd(err), opened.Close()); err != nil {
		return false, err
	}
	if !same || c.size < p.size {
		delete(s.seen, c.key)
		return false, nil
	}
	p.candidate = c
	return true, nil
}
