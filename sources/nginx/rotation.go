package nginx

import (
	"path/filepath"
	"regexp"
	"strings"
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

// is reports whether both are one file of one name.
func (c candidate) is(d candidate) bool { return c.path == d.path && c.key == d.key }

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
