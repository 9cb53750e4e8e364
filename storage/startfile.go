package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/daybook-data/daybook/internal/vfs"
)

const (
	startMagic       = 0x31534244 // "DBS1"
	startVersion     = 1
	startHeaderBytes = 32
	startAlloc       = 16 << 10 // allocated ahead, so that a vote can be written on a full disk
)

// startFile is the one thing beside the segments that cannot be rebuilt: raft's vote and term, what the log's front
// links to, and where partitions were trimmed. It is kept twice, and every change is written and synced to one copy
// after the other: a change that was acknowledged is in both, so either may be lost. Guarded by Journal.wmu.
type startFile struct {
	fsys  vfs.FS
	paths [2]string
	files [2]vfs.File
	seq   uint64
	stale bool // a copy is torn, damaged, missing or old: the next write makes both good again
	good  int  // the copy that is written last, as it is the better one

	front  *tail             // the state before the first frame that is kept
	values map[string][]byte // raft's StableStore
	starts map[uint32]int64  // TrimBefore
}

// openStart reads the start file of a journal. fresh says that no copy can be read: the journal is new, its
// creation was cut off, or, if there are segments, both are lost.
func openStart(fsys vfs.FS, dir string) (s *startFile, fresh bool, err error) {
	s = &startFile{fsys: fsys, front: newTail(), values: map[string][]byte{}, starts: map[uint32]int64{}}
	s.paths = [2]string{filepath.Join(dir, "start.0"), filepath.Join(dir, "start.1")}
	var best []byte
	for i, path := range s.paths {
		payload, seq, err := readStart(fsys, path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBadStart):
			s.stale = true
		case err != nil:
			return nil, false, fmt.Errorf("reading %s: %w", path, err)
		case seq > s.seq:
			s.stale = s.stale || best != nil
			best, s.seq, s.good = payload, seq, i
		case seq < s.seq:
			s.stale = true
		}
	}
	if fresh = best == nil; !fresh {
		if err := s.decode(best); err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", s.paths[0], err)
		}
	}
	return s, fresh, nil
}

// errBadStart says that a copy fails its checksum: it was being written when the power went, or it is damaged.
var errBadStart = errors.New("start file fails its checksum")

func readStart(fsys vfs.FS, path string) (payload []byte, seq uint64, err error) {
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return nil, 0, err
	}
	le := binary.LittleEndian
	if len(b) < startHeaderBytes || le.Uint32(b) != startMagic {
		return nil, 0, errBadStart
	}
	n := int64(le.Uint32(b[16:]))
	if startHeaderBytes+n > int64(len(b)) || crc32.Checksum(b[4:20], castagnoli) != le.Uint32(b[20:]) {
		return nil, 0, errBadStart
	}
	if v := le.Uint32(b[4:]); v != startVersion {
		return nil, 0, fmt.Errorf("journal format %d, this program knows %d: use a newer daybook", v, startVersion)
	}
	payload = b[startHeaderBytes : startHeaderBytes+n]
	if crc32.Checksum(payload, castagnoli) != le.Uint32(b[24:]) {
		return nil, 0, errBadStart
	}
	return payload, le.Uint64(b[8:]), nil
}

// write makes the present values durable in both copies. After ErrDiskFull nothing was written; after another error the
// journal must not go on.
func (s *startFile) write() error {
	payload := s.encode()
	le := binary.LittleEndian
	b := make([]byte, startHeaderBytes, startHeaderBytes+len(payload))
	le.PutUint32(b[0:], startMagic)
	le.PutUint32(b[4:], startVersion)
	le.PutUint64(b[8:], s.seq+1)
	le.PutUint32(b[16:], uint32(len(payload)))
	le.PutUint32(b[20:], crc32.Checksum(b[4:20], castagnoli))
	le.PutUint32(b[24:], crc32.Checksum(payload, castagnoli))
	b = append(b, payload...)
	if err := s.allocate(int64(len(b))); err != nil {
		return err
	}
	for _, i := range [2]int{1 - s.good, s.good} {
		f := s.files[i]
		if _, err := f.WriteAt(b, 0); err != nil {
			return fmt.Errorf("writing %s: %w", s.paths[i], err)
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("syncing %s: %w", s.paths[i], err)
		}
	}
	s.seq, s.stale = s.seq+1, false
	return nil
}

// reserve makes room for a front of another state before it is needed: it is needed to free space.
func (s *startFile) reserve(front *tail) error {
	now := s.front
	s.front = front
	need := int64(startHeaderBytes + len(s.encode()))
	s.front = now
	return s.allocate(need)
}

// allocate makes both files large enough, and makes them if they are not there.
func (s *startFile) allocate(need int64) error {
	for i, path := range s.paths {
		if s.files[i] == nil {
			f, err := s.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
			if err != nil {
				return fmt.Errorf("opening %s: %w", path, err)
			}
			s.files[i] = f
		}
		size, err := s.files[i].Size()
		if err == nil && size < need {
			err = refusal(s.files[i].Allocate(0, max(startAlloc, 2*need)))
		}
		if err != nil {
			return fmt.Errorf("allocating %s: %w", path, err)
		}
	}
	return nil
}

func (s *startFile) encode() []byte {
	b := s.front.encode(nil)
	b = put32(b, uint32(len(s.values)))
	for _, k := range slices.Sorted(maps.Keys(s.values)) {
		b = putBytes(putBytes(b, []byte(k)), s.values[k])
	}
	b = put32(b, uint32(len(s.starts)))
	for _, p := range slices.Sorted(maps.Keys(s.starts)) {
		b = put64(put32(b, p), uint64(s.starts[p]))
	}
	return b
}

func (s *startFile) decode(b []byte) (err error) {
	d := &decoder{buf: b}
	if s.front, err = decodeTail(d); err != nil {
		return err
	}
	for range d.count(8) {
		k := string(d.bytes())
		s.values[k] = bytes.Clone(d.bytes())
	}
	for range d.count(12) {
		p := d.u32()
		s.starts[p] = int64(d.u64())
	}
	return d.err
}

func (s *startFile) close() {
	for _, f := range s.files {
		if f != nil {
			_ = f.Close() // every write was synced
		}
	}
}
