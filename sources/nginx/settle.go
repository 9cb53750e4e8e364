package nginx

import (
	"slices"
	"time"
)

// keptDone is how many finished files a state holds; see settle.
const keptDone = 3

// keptLately bounds those kept because their files went away within the last minute.
const keptLately = 30

// settle puts the files in order, notes which are rotated, and forgets finished ones
// that are long past. Some are kept although their files are gone: a copy may appear.
func (s *scan) settle() {
	place := map[fileKey]int{}
	for i, c := range s.candidates {
		place[c.key] = i
	}
	rank := func(f *file) int {
		if i, ok := place[f.key]; ok && f.key != (fileKey{}) {
			return i
		}
		return -1 // renamed out of sight, or deleted: older than all that is there
	}
	slices.SortStableFunc(s.files, func(a, b *file) int { return rank(a) - rank(b) })
	for _, f := range s.files {
		_, there := place[f.key]
		s.goneLong(there, &f.gone)
		if rank(f) == len(s.candidates)-1 && len(s.candidates) > 0 {
			f.rotatedAt = time.Time{}
		} else if f.rotatedAt.IsZero() {
			f.rotatedAt = s.now
		}
	}
	if !slices.ContainsFunc(s.files, func(f *file) bool { return f.unsure && !f.done }) {
		s.forget(place) // not before it is known what they are copies of
	}
	for key, p := range s.seen {
		if _, there := place[key]; s.goneLong(there, &p.gone) {
			delete(s.seen, key)
		}
	}
}

// goneLong keeps the time at which a file went out of sight, and reports whether that
// is long ago.
func (s *scan) goneLong(there bool, since *time.Time) bool {
	switch {
	case there:
		*since = time.Time{}
	case since.IsZero():
		*since = s.now
	}
	return !there && s.now.Sub(*since) > goneAfter
}

// forget drops finished files but for the last few, those written lately, which may
// still grow, and those truncated lately, whose copies may still appear.
func (s *scan) forget(place map[fileKey]int) {
	done, truncated := 0, 0
	for i := len(s.files) - 1; i >= 0; i-- {
		f := s.files[i]
		if !f.done {
			continue
		}
		done++
		at, there := place[f.key]
		keep := !s.goneLong(there, &f.gone)
		switch {
		case f.key == fileKey{}:
			truncated++
			age := s.now.Sub(f.rotatedAt)
			keep = truncated <= keptDone && age < time.Hour || truncated <= keptLately && age < time.Minute
		case there:
			keep = s.now.Sub(s.candidates[at].changed) < time.Hour
		}
		if done <= keptDone || keep {
			continue
		}
		if there {
			s.pass(s.candidates[at])
		}
		s.files = slices.Delete(s.files, i, i+1)
	}
}
