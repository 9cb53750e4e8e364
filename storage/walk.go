package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/daybook-data/daybook/internal/vfs"
)

// walk reads a journal's frames in order without changing anything.
type walk struct {
	fsys     vfs.FS
	dir      string
	lock     io.Closer
	bases    []uint64
	start    *startFile // as it was read; nil if neither copy can be
	tail     *tail
	durable  uint64          // as the mark says
	cutting  bool            // the mark was made for a cut
	closed   bool            // the mark was made when the journal was closed in order
	loose    bool            // the next frame has nothing to link to
	known    map[uint32]bool // partitions met since the last gap; nil before the first one
	problems []error
	each     func(*segment, *frameHeader, []byte) error
}

// openWalk looks at a journal's directory. It takes the journal's lock, so that nobody changes it meanwhile, unless peek
// is set, or the directory cannot be written to: then nobody of this user can, and a walk need not.
func openWalk(fsys vfs.FS, dir string, peek bool) (w *walk, err error) {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	w = &walk{fsys: fsys, dir: dir, tail: newTail()}
	if slices.Contains(names, "lock") && !peek {
		if w.lock, err = fsys.Lock(filepath.Join(dir, "lock")); err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return nil, err
		}
	}
	var best uint64
	found := false
	for _, name := range []string{"start.0", "start.1"} {
		payload, seq, err := readStart(fsys, filepath.Join(dir, name))
		switch {
		case errors.Is(err, errBadStart):
			w.problems = append(w.problems, &DamageError{File: filepath.Join(dir, name), Reason: "this copy of the start file fails its checksum; the other one is used"})
		case errors.Is(err, os.ErrNotExist):
			w.problems = append(w.problems, fmt.Errorf("%s is missing; the other copy is used", filepath.Join(dir, name)))
		case err != nil:
			return w, errors.Join(err, w.close())
		case !found || seq > best:
			s := &startFile{values: map[string][]byte{}, starts: map[uint32]int64{}}
			if err := s.decode(payload); err != nil {
				return nil, errors.Join(err, w.close())
			}
			w.tail, w.start, best, found = s.front.clone(), s, seq, true
		}
	}
	if !found && len(names) > 0 {
		w.problems = append(w.problems, &DamageError{File: filepath.Join(dir, "start.0"), Reason: "no copy of the start file can be read; the log is read from its first segment, unlinked"})
		w.loose = true
	}
	if f, err := fsys.OpenFile(filepath.Join(dir, "mark"), os.O_RDONLY, 0); err == nil {
		was, _ := readMark(f) // unreadable is the same as unknown
		w.durable, w.cutting, w.closed = was.durable, was.state == markCutting, was.state == markClosed
		_ = f.Close() // read only
	}
	for _, name := range names {
		if base, ok := parseSegName(name); ok && base >= w.tail.pos {
			w.bases = append(w.bases, base)
		}
	}
	slices.Sort(w.bases)
	return w, nil
}

func (w *walk) close() error {
	if w.lock == nil {
		return nil
	}
	return w.lock.Close()
}

// segment walks one segment and adds what is wrong with it to problems.
func (w *walk) segment(base uint64, problems *[]error) error {
	path := filepath.Join(w.dir, segName(base))
	f, err := w.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	seg := &segment{base: base, path: path, file: f}
	if base != w.tail.pos {
		*problems = append(*problems, &DamageError{File: path, Position: w.tail.pos, End: base, Reason: "segments are missing before this one, or the one before ends early"})
		w.unlink(base)
	}
	if i := slices.Index(w.bases, base); i+1 < len(w.bases) { // behind the last frame lies what the file held before
		size = min(size, int64(w.bases[i+1]-base))
	}
	sc := &scanner{file: f, size: size}
	for more := true; more && err == nil; {
		more, err = w.frame(seg, sc, problems)
	}
	return err
}

// frame walks one frame; more is false at the end of the segment.
func (w *walk) frame(seg *segment, sc *scanner, problems *[]error) (more bool, err error) {
	v, err := sc.next(seg.size, w.tail)
	if err != nil {
		return false, fmt.Errorf("reading %s at %d: %w", seg.path, seg.size, err)
	}
	why := ""
	if v.frame == nil && w.isLast(seg) && seg.end() >= w.durable {
		if v, why, err = w.lookBehind(seg, sc); err != nil || v.frame == nil && why == "" {
			return false, err // the end of the log, torn or not
		}
	}
	if v.frame == nil {
		return w.gap(seg, sc, &v, why, problems), nil
	}
	if v.alien != "" {
		if !w.loose && !w.explained(&v) {
			*problems = append(*problems, seg.damage(seg.size, seg.size+int64(v.header.length), "frame is whole, but "+v.alien))
		}
		w.link(v.header.position)
		w.tail.index, w.tail.crc = v.header.index-1, v.header.prevCRC
	}
	if err := w.each(seg, &v.header, v.frame); err != nil {
		return false, err
	}
	w.loose = false
	for i := range v.header.dirBytes() / dirEntryBytes {
		d := entryAt(v.frame, i)
		w.tail.next[d.partition] = d.baseOffset + int64(d.records)
		if w.known != nil {
			w.known[d.partition] = true
		}
	}
	w.tail.addFrame(&v.header, nil)
	seg.size = int64(w.tail.pos - seg.base)
	return true, nil
}

// gap reports that no frame can be read where one should be, and goes on behind. That the segment ends here is told by who
// knows that it should not.
func (w *walk) gap(seg *segment, sc *scanner, v *verdict, why string, problems *[]error) (more bool) {
	end := w.skip(seg, sc)
	if end > seg.size || !v.zero {
		*problems = append(*problems, seg.damage(seg.size, end, v.reason()+why))
	}
	if end <= seg.size {
		return false
	}
	w.unlink(seg.base + uint64(end))
	seg.size = end
	return true
}

func (w *walk) isLast(seg *segment) bool { return seg.base == w.bases[len(w.bases)-1] }

// lookBehind judges the place where nothing more can be read of the last segment again, by what lies behind it. It is the
// end that the next start makes it, torn or not, if no frame is returned and no reason why it is damage.
func (w *walk) lookBehind(seg *segment, sc *scanner) (v verdict, why string, err error) {
	left, err := sc.behind(seg.size, seg.base, w.tail)
	if err != nil || left.proof == nil || w.cutting {
		return v, "", err
	}
	sc.buf = sc.buf[:0] // beside a running journal what was not there a moment ago may be there now
	v, err = sc.next(seg.size, w.tail)
	return v, ", but " + left.proof.vouches(), err
}

// unlink makes the walk go on at position, behind a gap: the next frame has nothing to link to.
func (w *walk) unlink(position uint64) {
	w.link(position)
	w.loose, w.known = true, map[uint32]bool{}
}

// link makes the walk take the frame at position as it is.
func (w *walk) link(position uint64) {
	next := w.tail.next
	w.tail = newTail()
	w.tail.pos, w.tail.next = position, next
}

// explained says whether a frame goes on at other offsets than expected only because of the gap that was reported.
func (w *walk) explained(v *verdict) bool {
	if w.known == nil || w.tail.links(&v.header) != "" {
		return false
	}
	for i := range v.header.dirBytes() / dirEntryBytes {
		d := entryAt(v.frame, i)
		if !w.known[d.partition] {
			w.tail.next[d.partition] = d.baseOffset
		}
	}
	return denseOffsets(v.frame, &v.header, w.tail) == ""
}

// skip finds where the next frame behind a damaged one starts; it returns seg.size if there is none.
func (w *walk) skip(seg *segment, sc *scanner) int64 {
	found := errors.New("found")
	at := seg.size
	_ = sc.leftovers(seg.size+frameAlign, seg.base, func(off int64) error {
		at = off
		return found // stops the search
	})
	return at
}
