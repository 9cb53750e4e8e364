package nginx

import (
	"errors"
	"io/fs"
	"slices"
	"time"
)

// series is one log: its live file and those it was rotated to.
type series struct {
	base  string
	files []*file // oldest first
	// seen are files that are not to be read: older than what is wanted, or copies.
	seen map[fileKey]*passed
	// problems are files that can't be opened, with why; they are tried at each scan.
	problems map[string]error
	// changed says that files came or went since the state was last emitted.
	changed bool
}

// passed is a file that is not to be read, and how to know it again.
type passed struct {
	candidate
	head fingerprint
	copy bool      // a copy of a file that is read; if it grows it is looked at anew
	gone time.Time // when it was first not there; zero while it is
}

// goneAfter is how long a file must be out of sight to count as deleted: a folder that
// is read while its files are renamed may show neither the old nor the new name.
const goneAfter = time.Minute

// errMoved says that a file was renamed or removed since its folder was read.
var errMoved = errors.New("the folder has changed while it was read")

// open opens a candidate, if it still is the file that it was.
func (c candidate) open(d disk) (content, error) {
	opened, err := openContent(d, c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	st, err := opened.stat()
	if err == nil && st.key != c.key {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// scan is one look at a series' folder.
type scan struct {
	*series
	disk       disk
	candidates []candidate
	liveKnown  bool // the log's own file is no new one, so no other was renamed from it
	now        time.Time
	log        *events
	taken      func(fileKey) bool // whether another series reads the file
	wanted     func(path string) bool
}

// live returns the file that has the log's own name, nil if there is none.
func (s *scan) live() *candidate {
	if n := len(s.candidates); n > 0 && s.candidates[n-1].live() {
		return &s.candidates[n-1]
	}
	return nil
}

// update takes in what has changed since the last scan. It goes from the oldest file
// to the newest and stops with errMoved where the folder changes meanwhile, so that no
// file is begun before an older one.
func (s *scan) update() error {
	live := s.live()
	s.liveKnown = live != nil && slices.ContainsFunc(s.files, func(f *file) bool { return f.key == live.key })
	for _, c := range s.candidates {
		known, err := s.known(c)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if err := s.add(c, false); err != nil {
			return err
		}
	}
	s.settle()
	return nil
}

// known reports whether the candidate is a file of the series already.
func (s *scan) known(c candidate) (bool, error) {
	for _, f := range s.files {
		switch {
		case f.key != c.key || f.key == fileKey{}:
		case !f.done: // its descriptor is open, so nobody else can have the key
			f.path = c.path
			f.peek()
			return true, nil
		case f.checked.same(c.status):
			f.path = c.path
			return true, nil
		default:
			return s.again(f, c)
		}
	}
	return s.passedBefore(c)
}

// again looks at a finished file that has changed: it has grown, or the kernel gave
// its key to another file.
func (s *scan) again(f *file, c candidate) (bool, error) {
	if f.offset == 0 { // it was empty, so nothing tells whether this is it
		s.remove(f)
		return false, nil
	}
	opened, err := c.open(s.disk)
	if errors.Is(err, errMoved) {
		return false, err
	}
	if s.problem(c.path, err); err != nil {
		return true, nil // next time
	}
	same, err := f.state().holds(opened)
	if err != nil && !isCompressed(c.path) {
		s.problem(c.path, err)
		return true, opened.Close()
	}
	if err != nil || !same {
		f.key = fileKey{}
		return false, opened.Close()
	}
	st, err := opened.stat()
	if err != nil || opened.length(st) <= f.offset {
		f.checked, f.path = c.status, c.path
		return true, errors.Join(err, opened.Close())
	}
	f.path, f.content, f.done, f.rotatedAt, f.grownAt, s.changed = c.path, opened, false, time.Time{}, s.now, true
	return true, nil
}

// add takes a file into the series.
func (s *scan) add(c candidate, atEnd bool) error {
	if s.taken(c.key) {
		s.pass(c)
		return nil
	}
	opened, err := c.open(s.disk)
	if errors.Is(err, errMoved) {
		return err
	}
	if s.problem(c.path, err); err != nil {
		return nil // it is tried again at each scan
	}
	f := newFile(c.path, c.key, opened, s.now)
	f.unsure, f.late = !c.live(), s.liveKnown
	if atEnd {
		if err := f.skipToEnd(s.base, s.generation); err != nil {
			return errors.Join(err, opened.Close())
		}
	}
	f.peek()
	s.files = append(s.files, f)
	s.changed = true
	s.log.counts.opened.Add(1)
	return nil
}

// problem notes that a file can't be opened, or that it can again.
func (s *scan) problem(path string, err error) { s.series.problem(s.log, path, err) }

func (s *series) problem(log *events, path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		delete(s.problems, path)
		return
	}
	if _, known := s.problems[path]; !known {
		log.unreadable(path, err)
	}
	s.problems[path] = err
}

// generation returns the highest generation among files with the id; -1 for none.
func (s *series) generation(id string) int {
	highest := -1
	for _, f := range s.files {
		if f.id == id {
			highest = max(highest, f.generation)
		}
	}
	return highest
}

// remove takes a file out of the series. Its content is the caller's.
func (s *series) remove(f *file) {
	s.files = slices.DeleteFunc(s.files, func(g *file) bool { return g == f })
}

func (s *series) close() {
	for _, f := range s.files {
		f.close()
	}
}

func (s *series) state() logState {
	l := logState{Base: s.base, Files: []fileState{}}
	for _, f := range s.files {
		l.Files = append(l.Files, f.state())
	}
	return l
}
