package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Fetch fills buf with the bytes of another replica's log from a journal position on.
type Fetch func(position uint64, buf []byte) error

// ErrNotMended says that a damaged stretch could not be replaced: the other copy's bytes are damaged too, or do not belong
// where these were.
var ErrNotMended = errors.New("another copy's bytes do not fit in place of the damaged ones")

// ErrNotCommitted puts mending off: raft may still cut off what is damaged.
var ErrNotCommitted = errors.New("the damaged stretch is not committed yet")

// asideDir is where damaged bytes are kept when good ones take their place, and asideFiles the number of segments of which
// they are.
const (
	asideDir   = quarantinePrefix + "mended"
	asideFiles = 4
)

// Mend replaces what is damaged of the segment at a journal position by the bytes of another copy, while the journal is
// used. Nothing is believed: each new frame must hold its own checksums, link to the frame before, and be the one that the
// frame behind links to. The good segment is written beside the damaged one, synced, and renamed over it; readers that
// have the damaged one open keep it until they are done. The damaged bytes are kept in quarantine-mended. If there is no
// damage any more nothing happens. A segment that is still written to is sealed first. The errors are ErrNotCommitted,
// ErrNotMended, ErrDiskFull, fetch's, or that of the disk; then all is as it was.
func (j *Journal) Mend(position uint64, fetch Fetch) error {
	j.mendMu.Lock()
	defer j.mendMu.Unlock()
	seg, err := j.sealedAt(position)
	if seg == nil || err != nil {
		return err
	}
	defer seg.release()
	d, err := j.survey(seg, func(int) error { return j.writable() })
	if err != nil {
		return err
	}
	if d == nil {
		j.damages.forget(seg.base)
		return nil
	}
	m := &mending{j: j, seg: seg, from: d.Offset, to: d.Offset + int64(d.End-d.Position), fetch: fetch, path: seg.path + ".tmp"}
	if err := m.run(); err != nil {
		_ = j.fsys.Remove(m.path) // the next start removes it if this does not
		return fmt.Errorf("mending %s: %w", seg.path, err)
	}
	j.o.Logger.Warn("a damaged stretch of a segment was replaced by the bytes of another copy", "file", seg.path, "from", m.from, "to", m.to, "was", d.Reason)
	return nil
}

// sealedAt returns the segment that a position lies in, with a reference, sealed; nil if there is none any more.
func (j *Journal) sealedAt(position uint64) (*segment, error) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return nil, err
	}
	j.mu.RLock()
	seg, last := j.index.segmentAt(position)
	if seg == nil {
		j.mu.RUnlock()
		return nil, nil
	}
	if seg.end() > j.committed.Load() {
		j.mu.RUnlock()
		return nil, ErrNotCommitted
	}
	seg.acquire()
	j.mu.RUnlock()
	if last {
		if err := j.roll(0); err != nil {
			seg.release()
			return nil, j.fail(err)
		}
	}
	return seg, nil
}

// mending makes a good segment of a damaged one.
type mending struct {
	j        *Journal
	seg      *segment
	from, to int64 // file offsets of what is damaged
	fetch    Fetch
	path     string // of the file that is made
	file     vfs.File
}

func (m *mending) run() (err error) {
	m.file, err = m.j.fsys.OpenFile(m.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = m.write(); err == nil {
		err = m.file.Sync()
	}
	if err == nil {
		err = setAside(m.j.fsys, m.j.dir, m.seg, m.from, m.to)
	}
	if err == nil {
		err = m.exchange()
	}
	if err != nil {
		_ = m.file.Close() // it is given up
	}
	return refusal(err)
}

// write writes the frames, good ones from the damaged file and the others from the other copy, and checks all of them.
func (m *mending) write() error {
	crc, seg := m.seg.prev, m.seg
	for i := 0; i < len(seg.entries); {
		if err := m.j.writable(); err != nil {
			return err
		}
		at, k := int64(seg.entries[i].rel), i+1
		for k < len(seg.entries) && seg.entryEnd(k)-at <= surveyBytes && m.damaged(k) == m.damaged(i) {
			k++
		}
		buf := make([]byte, seg.entryEnd(k-1)-at)
		read := func() error { return readAll(seg.file, buf, at) }
		if m.damaged(i) {
			read = func() error { return m.fetch(seg.base+uint64(at), buf) }
		}
		if err := read(); err != nil {
			return err
		}
		for ; i < k; i++ {
			frame := buf[int64(seg.entries[i].rel)-at : seg.entryEnd(i)-at]
			h, reason := seg.check(i, frame)
			if reason == "" && h.prevCRC != crc {
				reason = "it does not link to the frame before it"
			}
			if reason != "" {
				return fmt.Errorf("%w: raft entry %d: %s", ErrNotMended, seg.first+uint64(i), reason)
			}
			clearNote(frame) // what it says of another replica's disk means nothing here
			crc = h.crc
		}
		if _, err := m.file.WriteAt(buf, at); err != nil {
			return err
		}
	}
	if crc != seg.lastCRC {
		return fmt.Errorf("%w: the segment would end with another frame", ErrNotMended)
	}
	return nil
}

func (m *mending) damaged(i int) bool {
	rel := int64(m.seg.entries[i].rel)
	return m.from <= rel && rel < m.to
}

// exchange puts the good file in the place of the damaged one, on the disk and for readers. A crash leaves one or the
// other.
func (m *mending) exchange() error {
	j := m.j
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	j.mu.RLock()
	i := slices.Index(j.index.segs, m.seg)
	j.mu.RUnlock()
	if i < 0 { // retention was faster
		_ = m.file.Close() // nothing is to be kept of it
		return j.fsys.Remove(m.path)
	}
	if err := j.fsys.Rename(m.path, m.seg.path); err != nil {
		return err
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return err
	}
	j.replace(i, m.seg.on(m.file))
	return nil
}

// on is the same segment in another file.
func (s *segment) on(f vfs.File) *segment {
	next := &segment{
		base: s.base, path: s.path, file: f, prev: s.prev, discard: closeSegment, report: s.report,
		size: s.size, first: s.first, entries: s.entries, lastCRC: s.lastCRC, firstStamp: s.firstStamp, lastStamp: s.lastStamp,
	}
	next.table.Store(s.table.Load())
	next.acquire()
	return next
}

// replace puts next in the place of segment i. The caller holds wmu.
func (j *Journal) replace(i int, next *segment) {
	j.mu.Lock()
	old := j.index.segs[i]
	j.index.segs = slices.Clone(j.index.segs)
	j.index.segs[i] = next
	for _, p := range j.index.parts {
		for k := range p.spans {
			if p.spans[k].seg == old {
				p.spans[k].seg = next
			}
		}
	}
	j.mu.Unlock()
	j.cache.remove(old)
	j.damages.forget(next.base)
	old.release()
}

// setAside copies what is damaged of a segment, as far as it can be read, to where an operator finds it.
func setAside(fsys vfs.FS, dir string, seg *segment, from, to int64) error {
	aside := filepath.Join(dir, asideDir)
	if err := fsys.MkdirAll(aside, 0o755); err != nil {
		return err
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	names, err := fsys.ReadDir(aside)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-asideFiles+1)] {
		if err := fsys.Remove(filepath.Join(aside, name)); err != nil {
			return err
		}
	}
	f, err := fsys.OpenFile(filepath.Join(aside, fmt.Sprintf("%s.from-%d", segName(seg.base), from)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = copyReadable(f, seg.file, from, to)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("keeping the damaged bytes: %w", err)
	}
	return fsys.SyncDir(aside)
}

// copyReadable copies a stretch page by page where it cannot be read at once; what the disk does not give back stays zero.
func copyReadable(to, from vfs.File, at, end int64) error {
	size, err := from.Size()
	if err != nil {
		return err
	}
	buf := make([]byte, surveyBytes)
	for off := at; off < min(end, size); {
		n := int(min(int64(len(buf)), min(end, size)-off))
		if err := readAll(from, buf[:n], off); err != nil && !unreadable(err) {
			return err
		} else if err != nil {
			for p := 0; p < n; p += vfs.PageBytes {
				if page := buf[p:min(p+vfs.PageBytes, n)]; readAll(from, page, off+int64(p)) != nil {
					clear(page)
				}
			}
		}
		if _, err := to.WriteAt(buf[:n], off-at); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}
