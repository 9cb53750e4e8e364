package nginx

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rotated matches what logrotate and others put behind a log's name, or before its
// extension: .1, -20261129, .2026-11-29_12; then perhaps .gz.
var rotated = regexp.MustCompile(`^(?:\.(\d{1,3})|[._-](\d{4}[._-]?\d{2}[._-]?\d{2}(?:[._T-]?\d{1,10}){0,3}))$`)

// baseOf returns the path of the log that a file belongs to: its own, or, of a
// rotated file, that of the live one.
func baseOf(path string) string {
	dir, name := filepath.Split(path)
	name = strings.TrimSuffix(name, ".gz")
	for i := 1; i < len(name); i++ {
		if c := name[i]; c != '.' && c != '_' && c != '-' {
			continue
		}
		if rotated.MatchString(name[i:]) {
			return dir + name[:i]
		}
		ext := filepath.Ext(name)
		if m := rotated.FindStringSubmatch(name[i:max(i, len(name)-len(ext))]); m != nil && m[2] != "" {
			return dir + name[:i] + ext // a number there is more likely an instance's: app.1.log
		}
	}
	return path
}

// candidate is a file of a log as it lies in its folder.
type candidate struct {
	path string
	status
	number string // of the rotation, without leading zeros; empty where there is none
	date   string // of the rotation, digits only
}

// signature changes when files of the log's folder are made, renamed or removed.
type signature struct {
	folder time.Time
	live   fileKey
}

func (l *listing) signature(base string) signature {
	var sig signature
	if st, err := l.disk.stat(filepath.Dir(base)); err == nil {
		sig.folder = st.changed
	}
	if st, err := l.disk.stat(base); err == nil {
		sig.live = st.key
	}
	return sig
}

// listing is what the folders of the logs hold, read once for all logs of a scan.
type listing struct {
	disk  disk
	skip  func(path string) bool
	names map[string]map[string][]string // of a folder: the names by the log that they belong to
}

func newListing(d disk, skip func(path string) bool) *listing {
	return &listing{disk: d, skip: skip, names: map[string]map[string][]string{}}
}

// candidates returns the files of a log, the oldest first. A compressed file whose
// original is still there is left out: it is being written.
func (l *listing) candidates(base string) ([]candidate, error) {
	dir, _ := filepath.Split(base)
	byBase, err := l.folder(dir)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, name := range byBase[base] {
		path := dir + name
		if isCompressed(path) && slices.Contains(byBase[base], strings.TrimSuffix(name, ".gz")) {
			continue
		}
		st, err := l.disk.stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away since
		}
		if err != nil {
			return nil, err
		}
		if !st.regular {
			continue
		}
		c := candidate{path: path, status: st}
		c.number, c.date = rotationOf(path, base)
		found = append(found, c)
	}
	slices.SortStableFunc(found, older)
	return once(found), nil
}

// once drops the second sight of a file: one that was renamed while the folder was
// read has two names in it, and so has one with a link.
func once(found []candidate) []candidate {
	seen := map[fileKey]bool{}
	return slices.DeleteFunc(found, func(c candidate) bool {
		again := seen[c.key]
		seen[c.key] = true
		return again
	})
}

func (l *listing) folder(dir string) (map[string][]string, error) {
	if byBase, ok := l.names[dir]; ok {
		return byBase, nil
	}
	names, err := l.disk.list(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byBase := map[string][]string{}
	for _, name := range names {
		if path := dir + name; !l.skip(path) {
			base := baseOf(path)
			byBase[base] = append(byBase[base], name)
		}
	}
	l.names[dir] = byBase
	return byBase, nil
}

// rotationOf returns the number or date in a rotated file's name.
func rotationOf(path, base string) (number, date string) {
	name := strings.TrimSuffix(path, ".gz")
	suffix := strings.TrimPrefix(name, base)
	if ext := filepath.Ext(base); suffix == name {
		suffix = strings.TrimSuffix(strings.TrimPrefix(name, strings.TrimSuffix(base, ext)), ext)
	}
	m := rotated.FindStringSubmatch(suffix)
	if m == nil {
		return "", ""
	}
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, m[2])
	return strings.TrimLeft(m[1], "0"), digits
}

// older orders the files of a log by the age of what they hold: the higher number,
// the earlier date; the live file, which has neither, comes last. Files of two
// schemes are ordered by when they were last written.
func older(a, b candidate) int {
	switch {
	case a.live() || b.live():
		return boolCompare(a.live(), b.live())
	case a.number != "" && b.number != "":
		if len(a.number) != len(b.number) {
			return len(b.number) - len(a.number)
		}
		return strings.Compare(b.number, a.number)
	case a.date != "" && b.date != "":
		return strings.Compare(a.date, b.date)
	}
	return a.changed.Compare(b.changed)
}

func (c candidate) live() bool { return c.number == "" && c.date == "" }

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
