package nginx

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// names reports whether a pattern matches the path.
func (w *follower) names(path string) bool {
	return slices.ContainsFunc(w.config.Paths, func(pattern string) bool {
		ok, _ := filepath.Match(filepath.Clean(pattern), path) // checked when it was decoded
		return ok
	})
}

func (w *follower) excluded(path string) bool {
	return slices.ContainsFunc(w.config.Exclude, func(pattern string) bool {
		ok, _ := filepath.Match(filepath.Clean(pattern), path)
		return ok
	})
}

// match returns the files that the paths name, by the log that they belong to, and
// notes the paths that name none.
func (w *follower) match() map[string][]string {
	found := map[string][]string{}
	var silent []string
	for _, pattern := range w.config.Paths {
		paths := slices.DeleteFunc(w.disk.glob(filepath.Clean(pattern)), w.excluded)
		if len(paths) == 0 {
			silent = append(silent, pattern)
			if !slices.Contains(w.silent, pattern) {
				w.events.nothingMatches(pattern, w.whyNothing(pattern))
			}
		}
		for _, path := range paths {
			w.noteOdd(path)
			base := baseOf(path)
			found[base] = append(found[base], path)
		}
	}
	w.silent = silent
	return found
}

// errNoFile is what is wrong with a path that can't be read from an offset; containers
// link their access log to /dev/stdout.
var errNoFile = errors.New("is no regular file but a device, a pipe or a socket: let nginx log into a file")

func (w *follower) noteOdd(path string) {
	st, err := w.disk.stat(path)
	if err != nil || st.regular || st.folder {
		delete(w.odd, path)
		return
	}
	if w.odd[path] == nil {
		w.events.unreadable(path, errNoFile)
	}
	w.odd[path] = errNoFile
}

// whyNothing looks for a reason: filepath.Glob keeps errors of the system to itself.
func (w *follower) whyNothing(pattern string) error {
	dir := filepath.Dir(filepath.Clean(pattern))
	for strings.ContainsAny(dir, "*?[") {
		dir = filepath.Dir(dir)
	}
	_, err := w.disk.list(dir)
	return err
}
