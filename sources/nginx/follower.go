package nginx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// How often files are looked at. A rotated and deleted file that appeared and went
// between two looks was never seen; so the pause is short where something happens.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 200 * time.Millisecond
	scanEvery     = time.Second
)

// follower is one run of a source. It belongs to Run's goroutine.
type follower struct {
	*Source
	out    pipeline.Emitter
	parser *parser
	buffer []byte
	series []*series
	parked []logState // of logs that the paths no longer name

	silent  []string         // patterns that match nothing
	odd     map[string]error // paths that name a device or a pipe
	scanned time.Time
	dirty   bool // the state has changed since it was last emitted
}

func newFollower(s *Source, out pipeline.Emitter) *follower {
	s.events.logger = s.log
	return &follower{Source: s, out: out, parser: newParser(s.template), buffer: make([]byte, tailLength+chunkSize), odd: map[string]error{}}
}

func (w *follower) close() {
	for _, s := range w.series {
		s.close()
	}
}

// begin opens what the state knows and what the paths name.
func (w *follower) begin(st state, fresh bool) error {
	matches := w.match()
	l := newListing(w.excluded)
	w.scanned = time.Now()
	states := map[string][]fileState{}
	for _, logState := range st.Logs {
		if !w.names(logState.Base) && len(matches[logState.Base]) == 0 {
			w.parked = append(w.parked, logState)
			continue
		}
		states[logState.Base] = logState.Files
	}
	for _, base := range bases(matches, states) {
		if err := w.beginLog(base, states[base], time.UnixMicro(st.At), fresh && w.config.Start == "end", l, matches); err != nil {
			return err
		}
	}
	if w.once {
		if err := w.limit(); err != nil {
			return err
		}
	}
	w.dirty = true
	w.report()
	return nil
}

// bases returns the logs of both maps in a fixed order.
func bases(matches map[string][]string, states map[string][]fileState) []string {
	all := map[string]bool{}
	for base := range matches {
		all[base] = true
	}
	for base := range states {
		all[base] = true
	}
	names := make([]string, 0, len(all))
	for base := range all {
		names = append(names, base)
	}
	slices.Sort(names)
	return names
}

// names reports whether a pattern matches the log's own path.
func (w *follower) names(base string) bool {
	return slices.ContainsFunc(w.config.Paths, func(pattern string) bool {
		ok, _ := filepath.Match(filepath.Clean(pattern), base) // checked when it was decoded
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
		paths, _ := filepath.Glob(filepath.Clean(pattern))
		paths = slices.DeleteFunc(paths, w.excluded)
		if len(paths) == 0 {
			silent = append(silent, pattern)
			if !slices.Contains(w.silent, pattern) {
				w.events.nothingMatches(pattern, whyNothing(pattern))
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
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		delete(w.odd, path)
		return
	}
	if w.odd[path] == nil {
		w.events.unreadable(path, errNoFile)
	}
	w.odd[path] = errNoFile
}

// whyNothing looks for a reason: filepath.Glob keeps errors of the system to itself.
func whyNothing(pattern string) error {
	dir := filepath.Dir(filepath.Clean(pattern))
	for strings.ContainsAny(dir, "*?[") {
		dir = filepath.Dir(dir)
	}
	_, err := os.ReadDir(dir)
	return err
}

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
		l = newListing(w.excluded)
	}
	return &scan{
		series: s, candidates: c, now: time.Now(), log: &w.events,
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
	w.scanned = time.Now()
	if w.once {
		return nil
	}
	matches := w.match()
	l := newListing(w.excluded)
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
			l = newListing(w.excluded)
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
			l = newListing(w.excluded)
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
		info, err := os.Stat(s.base)
		if err != nil {
			continue
		}
		key := keyOf(s.base, info)
		if !slices.ContainsFunc(s.files, func(f *file) bool { return f.key == key }) {
			if _, seen := s.seen[key]; !seen {
				return true
			}
		}
	}
	return false
}

// follow reads until ctx ends, or all that was there at the start is emitted.
func (w *follower) follow(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	wait := shortestPause
	for {
		progress, err := w.round(ctx)
		if err != nil {
			return err
		}
		if progress {
			wait = shortestPause
		} else {
			if w.once && w.finished() {
				return w.end(ctx)
			}
			if w.rotated() || time.Since(w.scanned) >= scanEvery {
				if err := w.rescan(); err != nil {
					return err
				}
			}
			if err := w.move(ctx); err != nil {
				return err
			}
			pause.Reset(wait)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			wait = min(2*wait, longestPause)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// round lets each log read a piece. Of one log the oldest file that has something
// goes first, so that lines come in the order in which they were written.
func (w *follower) round(ctx context.Context) (progress bool, err error) {
	for _, s := range w.series {
		for i := 0; i < len(s.files); i++ {
			moved, err := w.step(ctx, s, s.files[i])
			if err != nil {
				return progress, err
			}
			if moved {
				progress = true
				break
			}
		}
	}
	if progress && time.Since(w.scanned) >= scanEvery {
		return progress, w.rescan()
	}
	return progress, nil
}

// move emits the state if it changed while no line was read.
func (w *follower) move(ctx context.Context) error {
	if !w.dirty {
		return nil
	}
	return w.emit(ctx, nil)
}

func (w *follower) emit(ctx context.Context, records []pipeline.Record) error {
	w.dirty = false
	st := state{Version: 1, At: time.Now().UnixMicro(), Logs: slices.Clone(w.parked)}
	for _, s := range w.series {
		st.Logs = append(st.Logs, s.state())
	}
	return w.out.Emit(ctx, records, st.position())
}

// limit notes the sizes at the start, for Once.
func (w *follower) limit() error {
	for _, s := range w.series {
		for _, f := range s.files {
			if f.content == nil {
				continue
			}
			size, _, err := f.content.stat()
			if err != nil {
				return err
			}
			f.limit = size // -1 for a compressed file: all of it
		}
	}
	return nil
}

func (w *follower) finished() bool {
	for _, s := range w.series {
		for _, f := range s.files {
			if !f.done && !f.ended {
				return false
			}
		}
	}
	return true
}

// end closes a run with Once. What could not be read makes it a failure: the caller
// must not take what there is for all.
func (w *follower) end(ctx context.Context) error {
	if err := w.move(ctx); err != nil {
		return err
	}
	if err := w.out.Flush(ctx); err != nil {
		return err
	}
	var problems []error
	for path, err := range w.odd {
		problems = append(problems, fmt.Errorf("%s %w", path, err))
	}
	for _, s := range w.series {
		for path, err := range s.problems {
			problems = append(problems, fmt.Errorf("reading %s: %w", path, err))
		}
		for _, f := range s.files {
			if f.damaged != nil {
				problems = append(problems, fmt.Errorf("reading %s: %w", f.path, f.damaged))
			}
		}
	}
	w.report()
	return errors.Join(problems...)
}

// report keeps the state of things for Report.
func (w *follower) report() {
	var behind int64
	files := 0
	lag := time.Duration(0)
	problems := maps.Clone(w.odd)
	for _, s := range w.series {
		for path, err := range s.problems {
			problems[path] = err
		}
		for _, f := range s.files {
			if f.done || f.content == nil {
				continue
			}
			files++
			if f.damaged != nil {
				problems[f.path] = f.damaged
			}
			if size, _, err := f.content.stat(); err == nil && size > f.offset {
				behind += size - f.offset
				if f.time > 0 {
					lag = max(lag, time.Since(time.UnixMicro(f.time)))
				}
			}
		}
	}
	w.events.saw(files, behind, lag, w.silent, problems)
}
