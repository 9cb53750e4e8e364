package nginx

import (
	"errors"
	"slices"
	"time"
)

// clockSlack is how far the clocks of the file system and of the process may differ.
const clockSlack = 2 * time.Second

// begin starts the series where its state says, which was made at the given time.
// Without a state the wanted files are read, or only followed from their end.
//
// Files older than the oldest that the state names were read before it, or were not
// wanted; but one that was written since holds something new, whatever its name.
func (s *scan) begin(states []fileState, at time.Time, atEnd bool) error {
	matched, err := s.match(states)
	if err != nil {
		return err
	}
	first := len(s.candidates)
	if i := slices.Index(matched, true); i >= 0 {
		first = i
	}
	for i, c := range s.candidates {
		switch {
		case matched[i]:
		case len(states) > 0 && i < first && first < len(s.candidates) && c.changed.Before(at.Add(-clockSlack)):
			s.pass(c) // older than what was read last
		case len(states) == 0 && (!s.wanted(c.path) || atEnd && i < len(s.candidates)-1):
			s.pass(c)
		default:
			if err := s.add(c, atEnd && len(states) == 0); err != nil {
				return err
			}
		}
	}
	s.settle()
	return nil
}

// match gives each state its file and reports which candidates were taken: first the
// files with the states' keys, if their contents agree, then any with their contents,
// which are copies, compressed perhaps.
func (s *scan) match(states []fileState) (matched []bool, err error) {
	matched = make([]bool, len(s.candidates))
	found := make([]bool, len(states))
	for _, sameKey := range []bool{true, false} {
		for n, st := range states {
			if found[n] {
				continue
			}
			i, c, err := s.find(st, sameKey, matched)
			if err != nil {
				return nil, err
			}
			if i < 0 {
				continue
			}
			found[n], matched[i] = true, true
			if err := s.goOn(s.candidates[i], c, st); err != nil {
				return nil, err
			}
		}
	}
	for n, st := range states {
		if !found[n] {
			s.lost(st)
		}
	}
	return matched, nil
}

// find returns the newest candidate with what a state says. The content is open; the
// caller owns it.
func (s *scan) find(st fileState, sameKey bool, matched []bool) (int, content, error) {
	for i := len(s.candidates) - 1; i >= 0; i-- {
		c := s.candidates[i]
		truncated := st.Key == fileKey{} // what it held can only be in a copy
		if matched[i] || (c.key == st.Key) != sameKey || !sameKey && (st.Offset == 0 || truncated && c.live()) {
			continue
		}
		opened, err := c.open()
		switch {
		case errors.Is(err, errMoved):
			return -1, nil, err
		case err != nil && sameKey:
			// Without it nothing tells whether it is the one; to take it for another would
			// be to read it twice.
			return -1, nil, err
		case err != nil:
			continue // add says so
		}
		if ok, err := st.holds(opened); err == nil && ok {
			return i, opened, nil
		}
		_ = opened.Close()
	}
	return -1, nil, nil
}

// lost notes that a file of the state is gone. A finished one may be; it is kept in
// mind, because its copy may still appear.
func (s *scan) lost(st fileState) {
	if !st.Done {
		s.log.vanished(s.base, st.Offset)
	}
	if st.ID == "" {
		return // nothing was emitted of it
	}
	st.Done, st.Key = true, fileKey{}
	f := newFile(s.base, fileKey{}, nil, s.now)
	f.id, f.generation, f.offset = st.ID, st.Generation, st.Offset
	f.done, f.rotatedAt, f.frozen = true, s.now, &st
	s.files = append(s.files, f)
}

// goOn follows the candidate from where the state says.
func (s *scan) goOn(c candidate, opened content, st fileState) error {
	f := newFile(c.path, c.key, opened, s.now)
	if err := f.restore(st); err != nil {
		return errors.Join(err, opened.Close())
	}
	if size, _, err := opened.stat(); st.Done && err == nil && (size == st.Offset || size < 0 && sizeMatches(c.path, st.Offset)) {
		f.done = true
		f.checked = c
		f.close()
	}
	s.files = append(s.files, f)
	return nil
}

// sizeMatches reports whether a compressed file unpacks to this many bytes, as far
// as it says itself.
func sizeMatches(path string, size int64) bool {
	packed, err := packedSize(path)
	return err == nil && packed == uint32(size)
}
