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

// Report is what Verify found.
type Report struct {
	Segments, Frames, Batches int
	Records                   int64
	Bytes                     int64
	FirstIndex, LastIndex     uint64 // raft's
	FirstPosition             uint64
	EndPosition               uint64
	DurableTo                 uint64 // as the mark file says
	Partitions                map[uint32]PartitionReport
	Problems                  []error // *DamageError where bytes are wrong
}

// PartitionReport is what a journal holds of a partition.
type PartitionReport struct {
	First, Next int64
	Batches     int
	Records     int64
}

// Verify reads a journal that no process has open, checks every byte of it, and changes nothing. The error is about not
// being able to look; what is wrong with the journal is in the report.
func Verify(dir string) (*Report, error) { return VerifyFS(vfs.OS{}, dir) }

// VerifyFS is Verify on another file system.
func VerifyFS(fsys vfs.FS, dir string) (*Report, error) {
	r := &Report{Partitions: map[uint32]PartitionReport{}}
	w, err := openWalk(fsys, dir, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r.Problems = append(r.Problems, w.problems...)
	r.FirstPosition = w.tail.pos
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		r.Frames++
		r.Bytes += int64(h.length)
		if r.FirstIndex == 0 {
			r.FirstIndex = h.index
		}
		r.LastIndex = h.index
		for i := range h.dirBytes() / dirEntryBytes {
			d := entryAt(frame, i)
			p, ok := r.Partitions[d.partition]
			if !ok {
				p.First = d.baseOffset
			}
			p.Next = d.baseOffset + int64(d.records)
			p.Batches++
			p.Records += int64(d.records)
			r.Partitions[d.partition] = p
			r.Batches++
			r.Records += int64(d.records)
		}
		return nil
	}
	for _, base := range w.bases {
		r.Segments++
		if err := w.segment(base, &r.Problems); err != nil {
			return nil, err
		}
	}
	r.EndPosition, r.DurableTo = w.tail.pos, w.durable
	if w.tail.pos < w.durable && len(r.Problems) == 0 {
		r.Problems = append(r.Problems, &DamageError{File: dir, Position: w.tail.pos, End: w.durable, Reason: "the log ends before the point that was on stable storage"})
	}
	return r, nil
}

// Dump writes one line for each frame and batch of a journal that no process has open, and goes on behind damage where
// it can.
func Dump(dir string, out io.Writer) error { return DumpFS(vfs.OS{}, dir, out) }

// DumpFS is Dump on another file system.
func DumpFS(fsys vfs.FS, dir string, out io.Writer) error {
	w, err := openWalk(fsys, dir, false)
	if err != nil {
		return err
	}
	defer w.close()
	problems := w.problems
	if _, err := fmt.Fprintf(out, "front position %d, raft index %d term %d\n", w.tail.pos, w.tail.index, w.tail.term); err != nil {
		return err
	}
	w.each = func(_ *segment, h *frameHeader, frame []byte) error { return dumpFrame(out, h, frame) }
	for _, base := range w.bases {
		if _, err := fmt.Fprintf(out, "segment %s\n", segName(base)); err != nil {
			return err
		}
		if err := w.segment(base, &problems); err != nil {
			return err
		}
		for _, p := range problems {
			if _, err := fmt.Fprintf(out, "damage: %v\n", p); err != nil {
				return err
			}
		}
		problems = nil
	}
	_, err = fmt.Fprintf(out, "end position %d, durable to %d\n", w.tail.pos, w.durable)
	return err
}

func dumpFrame(out io.Writer, h *frameHeader, frame []byte) error {
	_, err := fmt.Fprintf(out, "frame %d index %d term %d %s %d bytes crc %08x prev %08x time %d\n",
		h.position, h.index, h.term, h.typ, h.length, h.crc, h.prevCRC, h.stamp)
	at := frameHeaderBytes + h.dirBytes()
	for i := range h.dirBytes() / dirEntryBytes {
		if err != nil {
			return err
		}
		d := entryAt(frame, i)
		b := parseHeader(frame[at:])
		_, err = fmt.Fprintf(out, "  batch partition %d offset %d records %d %d bytes maxtime %d codec %d producer %d/%d sequence %d attributes %#x\n",
			d.partition, d.baseOffset, d.records, d.length, d.maxTimestamp, b.Compression(), b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Attributes)
		at += int(d.length)
	}
	return err
}

// walk reads a journal's frames in order without changing anything.
type walk struct {
	fsys     vfs.FS
	dir      string
	lock     io.Closer
	bases    []uint64
	start    *startFile // as it was read; nil if neither copy can be
	tail     *tail
	durable  uint64
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
		w.durable, _, _ = readMark(f) // unreadable is the same as unknown
		_ = f.Close()                 // read only
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
	v, err := sc.next(seg.size, w.tail, true)
	if err != nil {
		return false, fmt.Errorf("reading %s at %d: %w", seg.path, seg.size, err)
	}
	switch {
	case v.zero, v.broken != "" && w.isTorn(seg):
		return false, nil
	case v.broken != "":
		end := w.skip(seg, sc)
		*problems = append(*problems, seg.damage(seg.size, end, v.broken))
		if end <= seg.size {
			return false, nil
		}
		w.unlink(seg.base + uint64(end))
		seg.size = end
		return true, nil
	case v.alien != "":
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

// isTorn says whether what follows is the torn end that the next start cuts off: in the last segment, and not known to
// have been on stable storage.
func (w *walk) isTorn(seg *segment) bool {
	return seg.base == w.bases[len(w.bases)-1] && seg.end() >= w.durable
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
