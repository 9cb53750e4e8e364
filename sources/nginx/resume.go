package nginx

import (
	"errors"
	"slices"
	"time"
)

// clockSlack is how far the clocks of the file system and of the process may differ.
const clockSlack = 2 * time.Second

// begin starts the series where its state says, whose folders were looked at then.
// Without a state the wanted files are read, or only followed from their end.
//
// Files older than the oldest that the state names were read before it, or were not
// wanted; but one that was written since holds something new, whatever its name.
func (s *scan) begin(states []fileState, at time.Time, atEnd bool) error {
	matched, oldest, err := s.match(states)
	if err != nil {
		return err
	}
	live := s.live()
	s.liveKnown = live != nil && slices.ContainsFunc(states, func(st fileState) bool { return st.Key == live.key })
	for i, c := range s.candidates {
		switch {
		case matched[i]:
		case len(states) > 0 && i < oldest && oldest < len(s.candidates) && c.changed.Before(at.Add(-clockSlack)):
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

// claim is how a candidate is known to be the file of a state.
type claim int

const (
	byKey      claim = iota // it has the state's key, and its contents agree
	byContents              // it has the contents: a copy, compressed perhaps
	unreadKey               // nothing was read of it; it has the key and begins like it
	unreadHead              // nothing was read of it; it begins like it, as a copy does
)

// matches reports whether the claim may be made, before the candidate is opened. The
// files of which nothing was read go last: the kernel may have given the key of one to
// a copy of another.
func (by claim) matches(st fileState, c candidate) bool {
	if (st.Offset == 0) != (by >= unreadKey) {
		return false
	}
	truncated := st.Key == fileKey{} // what it held can only be in a copy
	switch by {
	case unreadKey:
		return c.key == st.Key && !(st.Plain && isCompressed(c.path))
	case unreadHead:
		return st.Head.Length > 0 && !c.live()
	}
	return (c.key == st.Key) == (by == byKey) && !(truncated && c.live())
}

// tells reports whether contents were compared. An empty file is only known by its key.
func (st fileState) tells() bool { return st.Head.Length > 0 }

// match gives each state its file. It reports which candidates were taken, and which
// is the oldest of those that are known for sure.
func (s *scan) match(states []fileState) (matched []bool, oldest int, err error) {
	matched, oldest = make([]bool, len(s.candidates)), len(s.candidates)
	found := make([]bool, len(states))
	for _, by := range []claim{byKey, byContents, unreadKey, unreadHead} {
		for n, st := range states {
			if found[n] {
				continue
			}
			i, f, err := s.find(st, by, matched)
			if err != nil {
				return nil, 0, err
			}
			if i < 0 {
				continue
			}
			if found[n], matched[i] = true, true; st.tells() {
				oldest = min(oldest, i)
			}
			s.files = append(s.files, f)
		}
	}
	for n, st := range states {
		if !found[n] {
			s.lost(st)
		}
	}
	return matched, oldest, nil
}

// find returns the newest candidate with what a state says, and the file to go on with.
func (s *scan) find(st fileState, by claim, matched []bool) (int, *file, error) {
	for i := len(s.candidates) - 1; i >= 0; i-- {
		c := s.candidates[i]
		if matched[i] || !by.matches(st, c) {
			continue
		}
		f, err := s.goOn(c, st)
		switch {
		case errors.Is(err, errMoved):
			return -1, nil, err
		case err != nil && (by == byKey || by == unreadKey) && !isCompressed(c.path):
			// Without it nothing tells whether it is the one; to take it for another would
			// be to read it twice.
			return -1, nil, err
		case err == nil && f != nil:
			return i, f, nil
		}
	}
	return -1, nil, nil
}

// goOn follows the candidate from where the state says; nil if it is another file.
func (s *scan) goOn(c candidate, st fileState) (*file, error) {
	opened, err := c.open(s.disk)
	if err != nil {
		return nil, err // add says so if it stays
	}
	f := newFile(c.path, c.key, opened, s.now)
	same, err := f.restore(st)
	if err != nil || !same {
		return nil, errors.Join(err, opened.Close())
	}
	f.unsure, f.late = st.Offset == 0 && !c.live(), st.Late
	f.peek()
	now, err := opened.stat()
	if err == nil && st.Done && (opened.length(now) == st.Offset || unpacks(opened, st.Offset)) {
		f.done, f.checked = true, now
		f.close()
	}
	return f, nil
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
	f := newFile(s.base, fileKey{}, nil, s.now)
	// Where its key is still there, with other contents, it was truncated.
	f.truncated = st.Key == fileKey{} || slices.ContainsFunc(s.candidates, func(c candidate) bool { return c.key == st.Key })
	st.Done, st.Key = true, fileKey{}
	f.id, f.generation, f.offset = st.ID, st.Generation, st.Offset
	f.done, f.rotatedAt, f.frozen = true, s.now, &st
	s.files = append(s.files, f)
}
