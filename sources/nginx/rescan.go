package nginx

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// steadyTries is how often a log is looked at while files of its folder are renamed.
// Renames come one after the other, so a few milliseconds are enough.
const steadyTries = 20

// scan looks at the folder of a series.
func (w *follower) scan(s *series, l *listing) (*scan, error) {
	c, err := l.candidates(s.base)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of %s: %w", s.base, err)
	}
	return &scan{
		series: s, disk: w.disk, candidates: c, now: w.now(), log: &w.events,
		taken:  func(k fileKey) bool { return w.taken(s, k) },
		wanted: w.names,
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
	began, whole := w.now(), true
	w.scanned = began
	if w.once {
		return nil
	}
	matches := w.match()
	logs := bases(matches, nil)
	for _, s := range w.series {
		logs = append(logs, s.base)
	}
	l := w.newListing(logs)
	for _, s := range w.series {
		seen, err := w.look(s, l)
		if err != nil {
			return err
		}
		whole = whole && seen
		w.dirty, s.changed = w.dirty || s.changed, false
	}
	if err := w.newLogs(l, matches); err != nil {
		return err
	}
	if whole {
		w.whole = began
	}
	w.report()
	return nil
}

// look takes in what has changed in one log. While its files are being renamed it
// looks again: going on with half of a rotation would read a file before an older one.
// In a folder where files come and go all the time, the next scan goes on; it reports
// whether this one has seen all.
func (w *follower) look(s *series, l *listing) (seen bool, err error) {
	for range steadyTries {
		sc, err := w.scan(s, l)
		if !errors.Is(err, errMoved) {
			if s.problem(&w.events, filepath.Dir(s.base), err); err != nil {
				return false, nil // said above, and tried at each scan
			}
			if err = sc.update(); err == nil {
				return true, nil
			}
		}
		if !errors.Is(err, errMoved) {
			return false, fmt.Errorf("looking at the files of %s: %w", s.base, err)
		}
		w.sleep(time.Millisecond)
		l = l.again()
	}
	return false, nil
}

// newLogs begins logs that were not there before.
func (w *follower) newLogs(l *listing, matches map[string][]string) error {
	for _, base := range bases(matches, nil) {
		if slices.ContainsFunc(w.series, func(s *series) bool { return s.base == base }) {
			continue
		}
		if err := w.beginLog(base, nil, time.Time{}, false, l); err != nil {
			return err
		}
		w.dirty = true
	}
	return nil
}

// beginLog begins a log where its state says. A folder that can't be read is an
// error here, and so is one that is never the same twice: without it nothing tells what
// of the log was read.
func (w *follower) beginLog(base string, states []fileState, at time.Time, atEnd bool, l *listing) error {
	for try := 1; ; try++ {
		s := &series{base: base, seen: map[fileKey]*passed{}, problems: map[string]error{}}
		sc, err := w.scan(s, l)
		if err == nil {
			err = sc.begin(states, at, atEnd)
		}
		if err == nil {
			w.series = append(w.series, s)
			return nil
		}
		s.close()
		if !errors.Is(err, errMoved) || try == 10*steadyTries {
			return fmt.Errorf("opening the files of %s: %w", base, err)
		}
		w.sleep(time.Millisecond)
		l = l.again()
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
