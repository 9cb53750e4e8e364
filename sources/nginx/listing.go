package nginx

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// listing is what the folders of the logs hold, read once for all logs of a scan.
type listing struct {
	disk    disk
	skip    func(path string) bool
	logs    map[string]bool   // whose files are wanted
	bases   map[string]string // of paths, as far as they were asked for
	folders map[string]folder
}

// folder holds the files of each log, the oldest first.
type folder map[string][]candidate

// steadyReads is how often a folder is read until it is the same twice.
const steadyReads = 6

func (w *follower) newListing(logs []string) *listing {
	l := &listing{disk: w.disk, skip: w.excluded, logs: map[string]bool{}, bases: map[string]string{}, folders: map[string]folder{}}
	for _, base := range logs {
		l.logs[base] = true
	}
	return l
}

// again returns a listing of the same logs that has read nothing.
func (l *listing) again() *listing {
	return &listing{disk: l.disk, skip: l.skip, logs: l.logs, bases: l.bases, folders: map[string]folder{}}
}

func (l *listing) base(path string) string {
	base, known := l.bases[path]
	if !known {
		base = baseOf(path)
		l.bases[path] = base
	}
	return base
}

// candidates returns the files of a log, the oldest first. A folder that is read while
// its files are renamed may show a file under two names or under none, so it is read
// until it is the same twice; errMoved says that it never was.
func (l *listing) candidates(base string) ([]candidate, error) {
	dir, _ := filepath.Split(base)
	if f, ok := l.folders[dir]; ok {
		return f[base], nil
	}
	var last folder
	for range steadyReads {
		f, err := l.read(dir)
		if err != nil {
			return nil, err
		}
		if last != nil && maps.EqualFunc(last, f, func(a, b []candidate) bool { return slices.EqualFunc(a, b, candidate.is) }) {
			l.folders[dir] = f
			return f[base], nil
		}
		last = f
	}
	return nil, errMoved
}

// read reads a folder. A compressed file whose original is still there is left out: it
// is being written.
func (l *listing) read(dir string) (folder, error) {
	names, err := l.disk.list(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return folder{}, nil
	}
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	names = slices.DeleteFunc(names, func(name string) bool {
		wanted := l.logs[l.base(dir+name)] && !l.skip(dir+name)
		there[name] = wanted
		return !wanted
	})
	f := folder{}
	for _, name := range names {
		if original := strings.TrimSuffix(name, ".gz"); original != name && there[original] {
			continue
		}
		path := dir + name
		base := l.base(path)
		st, err := l.disk.stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away since
		}
		if err != nil {
			return nil, err
		}
		if st.regular {
			c := candidate{path: path, status: st}
			c.number, c.date = rotationOf(path, base)
			f[base] = append(f[base], c)
		}
	}
	for base, found := range f {
		slices.SortStableFunc(found, older)
		f[base] = once(found)
	}
	return f, nil
}

// once drops the second name of a file that has a link.
func once(found []candidate) []candidate {
	seen := map[fileKey]bool{}
	return slices.DeleteFunc(found, func(c candidate) bool {
		again := seen[c.key]
		seen[c.key] = true
		return again
	})
}
