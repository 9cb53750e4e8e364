package nginx

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// scan looks at the folder of a series. It looks again if files were renamed in the
// meantime: half of a rotation would put them in a wrong order.
func (w *follower) scan(s *series, l *listing, matches map[string][]string) (*scan, error) {
	var c []candidate
	var err error
	for range 3 {
		before := l.signature(s.base)
		if c, err = l.candidates(s.base); err != nil {
			return nil, fmt.Errorf("reading the folder of %s: %w", s.base, err)
		}
		if l.signature(s.base) == before {
			break
		}
		l = newListing(w.disk, w.excluded)
	}
	return &scan{
		series: s, disk: w.disk, candidates: c, now: w.now(), log: &w.events,
		taken:  func(k fileKey) bool { return w.taken(s, k) },
		wanted: func(path string) bool { return slices.Contains(matches[s.base], path) },
	}, nil
}

// taken reports whether another series reads the file: two names of one file, by a link.
func (w *follower) taken(mine *series, k fileKey) bool {
	for _, s := range w.series {
		for _, f := range s.files {
			if s != mine && f.key == k && !f.done {
				return true
			}
		}
	}
	return false
}

// rescan takes in new files, rotations and deletions. With Once there is nothing to
// take in: the files are those of the start, and their descriptors are open.
func (w *follower) rescan() error {
	w.scanned = w.now()
	if w.once {
		return nil
	}
	matches := w.match()
	l := newListing(w.disk, w.excluded)
	for _, s := range w.series {
		if err := w.look(s, l, matches); err != nil {
			return err
		}
		w.dirty, s.changed = w.dirty || s.changed, false
	}
	if err := w.newLogs(l, matches); err != nil {
		return err
	}
	w.report()
	return nil
}

// look takes in what has changed in one log. While its files are being renamed it
// looks again: going on with half of a rotation would read a file before an older one.
func (w *follower) look(s *series, l *listing, matches map[string][]string) error {
	for try := 0; ; try++ {
		sc, err := w.scan(s, l, matches)
		s.problem(&w.events, filepath.Dir(s.base), err)
		if err != nil {
			return nil // said above, and tried at each scan
		}
		switch err := sc.update(); {
		case errors.Is(err, errMoved) && try < 20:
			time.Sleep(time.Millisecond) // a rename takes less
			l = newListing(w.disk, w.excluded)
		case errors.Is(err, errMoved):
			return nil // a folder in which files come and go all the time; the next scan goes on
		case err != nil:
			return fmt.Errorf("looking at the files of %s: %w", s.base, err)
		default:
			return nil
		}
	}
}

// newLogs begins logs that were not there before.
func (w *follower) newLogs(l *listing, matches map[string][]string) error {
	for _, base := range bases(matches, nil) {
		if slices.ContainsFunc(w.series, func(s *series) bool { return s.base == base }) {
			continue
		}
		if err := w.beginLog(base, nil, time.Time{}, false, l, matches); err != nil {
			return err
		}
		w.dirty = true
	}
	return nil
}

// beginLog begins a log where its state says. A folder that can't be read is an
// error here: without it nothing tells what of the log was read.
func (w *follower) beginLog(base string, states []fileState, at time.Time, atEnd bool, l *listing, matches map[string][]string) error {
	for {
		s := &series{base: base, seen: map[fileKey]*passed{}, problems: map[string]error{}}
		sc, err := w.scan(s, l, matches)
		if err != nil {
			return err
		}
		switch err := sc.begin(states, at, atEnd); {
		case errors.Is(err, errMoved):
			s.close()
			l = newListing(w.disk, w.excluded)
			continue // it changes for a moment only: renames, one after the other
		case err != nil:
			s.close()
			return fmt.Errorf("opening the files of %s: %w", base, err)
		}
		w.series = append(w.series, s)
		return nil
	}
}

// rotated reports whether a live path names another file than the newest that is
// being read. It costs one call of the system a log, so it is asked often.
func (w *follower) rotated() bool {
	for _, s := range w.series {
		st, err := w.disk.stat(s.base)
		if err != nil {
			continue
		}
		key := st.key
		if !slices.ContainsFunc(s.files, func(f *file) bool { return f.key == key }) {
			if _, seen := s.seen[key]; !seen {
				return true
			}
		}
	}
	return false
}
