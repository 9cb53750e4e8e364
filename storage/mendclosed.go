package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/daybook-data/daybook/internal/vfs"
)

// ErrCannotMend says that no bytes can mend the damage which keeps a journal from opening, so that the copy has to be
// replaced as a whole. Here: it is not in a sealed segment, and nothing on this disk vouches for what has to be there.
var ErrCannotMend = errors.New("no bytes can mend it: another copy has to take this one's place")

// MendClosed is [Journal.Mend] for a journal that does not open because of d, the error of Open. fetch also says whether
// what it gives is known to be committed where it comes from. The next Open may find damage further on, which takes
// another call. If it returns an error the directory is as it was. It is ErrCannotMend if no bytes can mend it.
func MendClosed(fsys vfs.FS, dir string, d *DamageError, fetch func(position uint64, buf []byte) (committed bool, err error)) error {
	lock, err := fsys.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	m := &closedMending{fsys: fsys, dir: dir, fetch: fetch, committed: true}
	err = m.run(d)
	return errors.Join(err, lock.Close())
}

// closedMending makes a good segment of a damaged one whose frames are not known.
type closedMending struct {
	fsys  vfs.FS
	dir   string
	fetch func(position uint64, buf []byte) (committed bool, err error)

	seg       *segment // of which only base, path, file and size are known
	next      uint64   // the base of the segment behind
	before    *segment // the one before, of which only its index is known; nil: not even that is
	prev      *uint32  // the checksum that the first frame links to; nil: the next Open has to see to it
	committed bool     // all that was fetched is
	file      vfs.File
}

func (m *closedMending) run(d *DamageError) error {
	if err := m.find(d); err != nil {
		return err
	}
	defer m.seg.file.Close() // read only
	from, to := int64(d.Position-m.seg.base), int64(max(d.End, d.Position+1)-m.seg.base)
	to = min(int64(aligned(int(to))), m.seg.size)
	var err error
	for _, r := range [][2]int64{{from, to}, {from, m.seg.size}, {0, m.seg.size}} { // there may be more damage, behind or before
		if err = m.attempt(r[0], r[1]); !errors.Is(err, ErrNotMended) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("mending %s: %w", m.seg.path, err)
	}
	return nil
}

// find opens the segment that the damage is in, if it is a sealed one.
func (m *closedMending) find(d *DamageError) error {
	names, err := m.fsys.ReadDir(m.dir)
	if err != nil {
		return err
	}
	var bases []uint64
	for _, name := range names {
		if base, ok := parseSegName(name); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	n, found := slices.BinarySearch(bases, d.Position)
	if !found {
		n--
	}
	if n < 0 || n+1 >= len(bases) || filepath.Ext(d.File) != segSuffix {
		return ErrCannotMend
	}
	m.next = bases[n+1]
	path := filepath.Join(m.dir, segName(bases[n]))
	f, err := m.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	m.seg = &segment{base: bases[n], path: path, file: f, size: int64(m.next - bases[n])}
	if n > 0 {
		before := &segment{base: bases[n-1], path: filepath.Join(m.dir, segName(bases[n-1]))}
		if _, err := readIndex(m.fsys, before); err == nil && before.end() == m.seg.base {
			m.before, m.prev = before, &before.lastCRC
		}
	}
	return nil
}

// attempt writes the segment anew, with the bytes from one file offset to another fetched.
func (m *closedMending) attempt(from, to int64) (err error) {
	path := m.seg.path + ".tmp"
	if m.file, err = m.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return err
	}
	if err = m.write(from, to); err == nil {
		err = m.verify()
	}
	if err == nil {
		err = m.file.Sync()
	}
	if cerr := m.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = setAside(m.fsys, m.dir, m.seg, from, to)
	}
	if err == nil {
		err = m.fsys.Rename(path, m.seg.path)
	}
	if err != nil {
		_ = m.fsys.Remove(path) // the next start removes it if this does not
		return refusal(err)
	}
	return m.fsys.SyncDir(m.dir)
}

func (m *closedMending) write(from, to int64) error {
	buf := make([]byte, surveyBytes)
	for at := int64(0); at < m.seg.size; {
		end := m.seg.size
		damaged := from <= at && at < to
		switch {
		case damaged:
			end = to
		case at < from:
			end = from
		}
		n := min(end-at, surveyBytes)
		if damaged {
			committed, err := m.fetch(m.seg.base+uint64(at), buf[:n])
			if err != nil {
				return err
			}
			m.committed = m.committed && committed
		} else if _, err := m.seg.file.ReadAt(buf[:n], at); err != nil && err != io.EOF {
			return err
		}
		if _, err := m.file.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// verify reads what was written frame by frame, and clears the notes of the log that it comes from.
func (m *closedMending) verify() error {
	sc := &scanner{file: m.file, size: m.seg.size}
	prev := m.prev
	for at := int64(0); at < m.seg.size; {
		h, err := sc.whole(at, m.seg.base, func(*frameHeader) bool { return true })
		if err != nil {
			return err
		}
		if h == nil || prev != nil && h.prevCRC != *prev || at+int64(h.length) > m.seg.size {
			return fmt.Errorf("%w: journal position %d", ErrNotMended, m.seg.base+uint64(at))
		}
		var none [noteBytes]byte
		if _, err := m.file.WriteAt(none[:], at+noteAt); err != nil {
			return err
		}
		crc := h.crc
		prev, at = &crc, at+int64(h.length)
	}
	if follows, known := m.follows(); known && follows != *prev || !known && !m.committed {
		return fmt.Errorf("%w: the segment behind goes on from another frame", ErrNotMended)
	}
	return nil
}

// ClosedLinks returns the links at both ends of the sealed segment with the damage d, as the segments beside it know them; those
// that they don't are left out. Where the others have committed another link the damage cannot be mended: what this log has
// there was never committed.
func ClosedLinks(fsys vfs.FS, dir string, d *DamageError) (all []Link, err error) {
	m := &closedMending{fsys: fsys, dir: dir}
	if err := m.find(d); err != nil {
		return nil, err
	}
	defer m.seg.file.Close() // read only
	if m.before != nil && len(m.before.entries) > 0 {
		all = append(all, Link{m.before.last(), m.before.end(), m.before.lastCRC})
	}
	if h, crc, known := m.behind(); known {
		all = append(all, Link{h.index - 1, m.next, crc})
	}
	return all, nil
}

// follows is the checksum that the segment behind goes on from, if its first frame's header is whole.
func (m *closedMending) follows() (crc uint32, known bool) {
	_, crc, known = m.behind()
	return crc, known
}

// behind is the header of the first frame of the segment behind, if it is whole, and the checksum that it goes on from.
func (m *closedMending) behind() (h frameHeader, crc uint32, known bool) {
	f, err := m.fsys.OpenFile(filepath.Join(m.dir, segName(m.next)), os.O_RDONLY, 0)
	if err != nil {
		return h, 0, false
	}
	defer f.Close() // read only
	size, err := f.Size()
	if err != nil {
		return h, 0, false
	}
	sc := &scanner{file: f, size: size}
	head, err := sc.bytes(0, frameHeaderBytes)
	if err != nil {
		return h, 0, false
	}
	h, ok := parseFrameHeader(head, m.next)
	if !ok {
		return h, 0, false
	}
	whole, err := sc.bytes(0, frameHeaderBytes+h.dirBytes())
	if err != nil || !h.checkDirectory(whole) {
		return h, 0, false
	}
	return h, binary.LittleEndian.Uint32(whole[48:]), true
}
