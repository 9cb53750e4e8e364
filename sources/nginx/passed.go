package nginx

import (
	"errors"
)

// pass notes that the candidate is not to be read.
func (s *scan) pass(c candidate) {
	p := &passed{candidate: c}
	if opened, err := c.open(s.disk); err == nil {
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
	if c.same(p.status) {
		p.path = c.path
		return true, nil
	}
	// What was empty can't be known again, and a copy that goes on has more to be judged.
	if p.head.Length == 0 || p.copy {
		delete(s.seen, c.key)
		return false, nil
	}
	opened, err := c.open(s.disk)
	if errors.Is(err, errMoved) {
		return false, err
	}
	if s.problem(c.path, err); err != nil {
		return true, nil // next time
	}
	same, err := p.head.standsAt(opened, 0)
	if err := errors.Join(err, opened.Close()); err != nil {
		if isCompressed(c.path) { // one that is damaged or being written is not what was whole
			delete(s.seen, c.key)
			return false, nil
		}
		s.problem(c.path, err)
		return true, nil
	}
	if !same || c.size < p.size {
		delete(s.seen, c.key)
		return false, nil
	}
	p.candidate = c
	return true, nil
}
