package nginx

import (
	"errors"
	"io"
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
	gone time.Time // when it was first not there; zero while it is
}

// goneAfter is how long a file must be out of sight to count as deleted: a folder that
// is read while its files are renamed may show neither the old nor the new name.
const goneAfter = time.Minute

// errMoved says that a file was renamed or removed since its folder was read.
var errMoved = errors.New("the folder has changed while it was read")

// open opens a candidate, if it still is the file that it was.
func (c candidate) open() (content, error) {
	opened, key, err := openContent(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errMoved
	case err != nil:
		return nil, err
	case key != c.key:
		return nil, errors.Join(errMoved, opened.Close())
	}
	return opened, nil
}

// scan is one look at a series' folder.
type scan struct {
	*series
	candidates []candidate
	now        time.Time
	log        *events
	taken      func(fileKey) bool // whether another series reads the file
	wanted     func(path string) bool
}

// keptDone is how many finished files a state holds; see settle.
const keptDone = 3

// keptLately bounds those kept because their files went away within the last minute.
const keptLately = 30

// clockSlack is how far the clocks of the file system and of the process may differ.
const clockSlack = 2 * time.Second

// begin starts the series where its state says, which was made at the given time.
// Without a state the wanted files are read, or only followed from their end.
//
// Files older than the oldest that the state names were read before it, or were not
// wanted; but one that was written since holds something new, whatever its name.
func (s *scan) begin(states []fileState, at time.Time, atEnd bool) error {
	matched, err := s.match(states)
	if err != nil {
		return err
	}
	first := len(s.candidates)
	if i := slices.Index(matched, true); i >= 0 {
		first = i
	}
	for i, c := range s.candidates {
		switch {
		case matched[i]:
		case len(states) > 0 && i < first && first < len(s.candidates) && c.changed.Before(at.Add(-clockSlack)):
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

// match gives each state its file and reports which candidates were taken: first the
// files with the states' keys, if their contents agree, then any with their contents,
// which are copies, compressed perhaps.
func (s *scan) match(states []fileState) (matched []bool, err error) {
	matched = make([]bool, len(s.candidates))
	found := make([]bool, len(states))
	for _, sameKey := range []bool{true, false} {
		for n, st := range states {
			if found[n] {
				continue
			}
			i, c, err := s.find(st, sameKey, matched)
			if err != nil {
				return nil, err
			}
			if i < 0 {
				continue
			}
			found[n], matched[i] = true, true
			if err := s.goOn(s.candidates[i], c, st); err != nil {
				return nil, err
			}
		}
	}
	for n, st := range states {
		if !found[n] {
			s.lost(st)
		}
	}
	return matched, nil
}

// find returns the newest candidate with what a state says. The content is open; the
// caller owns it.
func (s *scan) find(st fileState, sameKey bool, matched []bool) (int, content, error) {
	for i := len(s.candidates) - 1; i >= 0; i-- {
		c := s.candidates[i]
		truncated := st.Key == fileKey{} // what it held can only be in a copy
		if matched[i] || (c.key == st.Key) != sameKey || !sameKey && (st.Offset == 0 || truncated && c.live()) {
			continue
		}
		opened, err := c.open()
		switch {
		case errors.Is(err, errMoved):
			return -1, nil, err
		case err != nil && sameKey:
			// Without it nothing tells whether it is the one; to take it for another would
			// be to read it twice.
			return -1, nil, err
		case err != nil:
			continue // add says so
		}
		if ok, err := st.holds(opened); err == nil && ok {
			return i, opened, nil
		}
		_ = opened.Close()
	}
	return -1, nil, nil
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
	st.Done, st.Key = true, fileKey{}
	f := newFile(s.base, fileKey{}, nil, s.now)
	f.id, f.generation, f.offset = st.ID, st.Generation, st.Offset
	f.done, f.rotatedAt, f.frozen = true, s.now, &st
	s.files = append(s.files, f)
}

// goOn follows the candidate from where the state says.
func (s *scan) goOn(c candidate, opened content, st fileState) error {
	f := newFile(c.path, c.key, opened, s.now)
	if err := f.restore(st); err != nil {
		return errors.Join(err, opened.Close())
	}
	if size, _, err := opened.stat(); st.Done && err == nil && (size == st.Offset || size < 0 && sizeMatches(c.path, st.Offset)) {
		f.done = true
		f.checked = c
		f.close()
	}
	s.files = append(s.files, f)
	return nil
}

// sizeMatches reports whether a compressed file unpacks to this many bytes, as far
// as it says itself.
func sizeMatches(path string, size int64) bool {
	packed, err := packedSize(path)
	return err == nil && packed == uint32(size)
}

// update takes in what has changed since the last scan. It goes from the oldest file
// to the newest and stops with errMoved where the folder changes meanwhile, so that no
// file is begun before an older one.
func (s *scan) update() error {
	for _, c := range s.candidates {
		known, err := s.known(c)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		switch v, err := s.copied(c); {
		case errors.Is(err, errMoved):
			return err
		case err != nil:
			s.problem(c.path, err)
		case v == isNew:
			if err := s.add(c, false); err != nil {
				return err
			}
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
			return true, nil
		case f.checked.size == c.size && f.checked.changed.Equal(c.changed):
			f.path = c.path
			return true, nil
		default:
			return s.again(f, c)
		}
	}
	return s.passedBefore(c)
}

// pass notes that the candidate is not to be read.
func (s *scan) pass(c candidate) {
	p := &passed{candidate: c}
	if opened, err := c.open(); err == nil {
		if head, err := readFull(opened, 0, headLength); err == nil {
			p.head = fingerprintOf(head)
		}
		_ = opened.Close()
	}
	s.seen[c.key] = p
}

// passedBefore reports whether the candidate is one that is not to be read, and not
// another file with its key.
func (s *scan) passedBefore(c candidate) (bool, error) {
	p, ok := s.seen[c.key]
	if !ok {
		return false, nil
	}
	if c.size == p.size && c.changed.Equal(p.changed) {
		p.path = c.path
		return true, nil
	}
	opened, err := c.open()
	if errors.Is(err, errMoved) {
		return false, err
	}
	if s.problem(c.path, err); err != nil {
		return true, nil // next time
	}
	same, err := p.head.standsAt(opened, 0)
	if err = errors.Join(ignoreEnd(err), opened.Close()); err != nil {
		return false, err
	}
	if !same || c.size < p.size {
		delete(s.seen, c.key)
		return false, nil
	}
	p.candidate = c
	return true, nil
}

// again looks at a finished file that has changed: it has grown, or the kernel gave
// its key to another file.
func (s *scan) again(f *file, c candidate) (bool, error) {
	opened, err := c.open()
	if errors.Is(err, errMoved) {
		return false, err
	}
	if s.problem(c.path, err); err != nil {
		return true, nil // next time
	}
	same, err := f.state().holds(opened)
	if err != nil || !same {
		f.key = fileKey{}
		return false, errors.Join(ignoreEnd(err), opened.Close())
	}
	f.checked, f.path = c, c.path
	if size, _, err := opened.stat(); err != nil || size <= f.offset {
		return true, errors.Join(err, opened.Close())
	}
	f.content, f.done, f.rotatedAt, f.grownAt, s.changed = opened, false, time.Time{}, s.now, true
	return true, nil
}

// ignoreEnd drops the errors of a file that ends too early.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// add takes a file into the series.
func (s *scan) add(c candidate, atEnd bool) error {
	if s.taken(c.key) {
		s.pass(c)
		return nil
	}
	opened, err := c.open()
	if errors.Is(err, errMoved) {
		return err
	}
	if s.problem(c.path, err); err != nil {
		return nil // it is tried again at each scan
	}
	f := newFile(c.path, c.key, opened, s.now)
	if atEnd {
		if err := f.skipToEnd(s.base, s.generation); err != nil {
			return errors.Join(err, opened.Close())
		}
	}
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
		if rank(f) == len(s.candidates)-1 && len(s.candidates) > 0 {
			f.rotatedAt = time.Time{}
		} else if f.rotatedAt.IsZero() {
			f.rotatedAt = s.now
		}
	}
	s.forget(place)
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
