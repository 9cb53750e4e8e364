package storage

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

const (
	segSuffix   = ".seg"
	idxSuffix   = ".idx"
	sparePrefix = "spare-"
)

// segment is one file of frames. Positions run on without gaps: a segment's base is the end of the one before, so a
// frame's position does not depend on where a replica rolls its files. Frames never cross files.
//
// Fields below the line change while the segment is the last one; they are written under Journal.mu.
type segment struct {
	base uint64 // journal position of the file's first byte, and the file's name
	path string
	file vfs.File
	prev uint32 // crc of the frame before the first

	refs    atomic.Int32                 // one for the log itself, one for each reader; at zero the file is given up
	discard func(*segment)               // called once at zero
	report  func(*segment, *DamageError) // told of damage in it; nil while the log is being read
	table   atomic.Pointer[table]        // a sealed segment's batch index, if it is in memory
	edge    atomic.Pointer[edge]         // the same, kept while the segment is committed only in part

	keys     atomic.Pointer[keyFile]  // a sealed segment's key index, if it was looked for
	tagTable atomic.Pointer[tagTable] // a sealed segment's tag index, if it is in memory
	indexMu  sync.Mutex               // held while these two are made; guards tagged
	tagged   bool                     // there is a tag index file

	seen atomic.Pointer[time.Time] // when retention first looked at it and could not tell its age

	viewMu sync.Mutex // guards view
	view   *view      // the file in memory, if it was read

	// --
	size       int64   // bytes of whole frames
	first      uint64  // raft index of entries[0]
	entries    []entry // one for each frame
	lastCRC    uint32
	firstStamp int64 // leader's time of the first frame, µs
	lastStamp  int64
}

// entry is one frame of a segment.
type entry struct {
	rel  uint32 // file offset
	term uint32
	typ  frameType
}

// end is the position behind the last frame.
func (s *segment) end() uint64 { return s.base + uint64(s.size) }

// last is the raft index of the last frame; first-1 if there is none.
func (s *segment) last() uint64 { return s.first + uint64(len(s.entries)) - 1 }

// entryEnd is the file offset behind frame i.
func (s *segment) entryEnd(i int) int64 {
	if i+1 < len(s.entries) {
		return int64(s.entries[i+1].rel)
	}
	return s.size
}

// add notes a frame that was written at the end.
func (s *segment) add(h *frameHeader) {
	if len(s.entries) == 0 {
		s.first, s.firstStamp = h.index, h.stamp
	}
	s.entries = append(s.entries, entry{rel: uint32(h.position - s.base), term: uint32(h.term), typ: h.typ})
	s.size = int64(h.position-s.base) + int64(h.length)
	s.lastCRC, s.lastStamp = h.crc, h.stamp
}

// entryAround returns the frame that the file offset rel lies in.
func entryAround(entries []entry, rel uint32) entry {
	n := sort.Search(len(entries), func(i int) bool { return entries[i].rel > rel })
	if n == 0 {
		return entry{}
	}
	return entries[n-1]
}

// acquire keeps the file as it is until release. The caller must hold Journal.mu or have a reference already.
func (s *segment) acquire() { s.refs.Add(1) }

func (s *segment) release() {
	if s.refs.Add(-1) == 0 {
		s.dropView()
		s.discard(s)
	}
}

// damage describes bytes of the segment that are not what was written.
func (s *segment) damage(rel int64, end int64, reason string) *DamageError {
	return s.tell(&DamageError{Offset: rel, End: s.base + uint64(end), Reason: reason})
}

// lost describes bytes that the disk does not give.
func (s *segment) lost(rel int64, end int64, err error) *DamageError {
	return s.tell(&DamageError{Offset: rel, End: s.base + uint64(end), Reason: "it cannot be read: " + err.Error(), Err: err})
}

func (s *segment) tell(d *DamageError) *DamageError {
	d.File, d.Position = s.path, s.base+uint64(d.Offset)
	if s.report != nil {
		s.report(s, d)
	}
	return d
}

// read fills buf with bytes of frames that were written and whose place is known. Bytes that the file does not have any more,
// or the disk does not give, are damage, as those are that differ.
func (s *segment) read(buf []byte, rel int64) error {
	err := readAll(s.file, buf, rel)
	switch {
	case err == nil:
		return nil
	case unreadable(err):
		return s.lost(rel, rel+int64(len(buf)), err)
	}
	return fmt.Errorf("reading %s at %d: %w", s.path, rel, err)
}

func segName(base uint64) string { return fmt.Sprintf("%020d%s", base, segSuffix) }

func idxPath(segPath string) string { return strings.TrimSuffix(segPath, segSuffix) + idxSuffix }

// parseSegName returns the base in a segment's file name.
func parseSegName(name string) (base uint64, ok bool) {
	digits, found := strings.CutSuffix(name, segSuffix)
	if !found || len(digits) != 20 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		base = base*10 + uint64(c-'0')
	}
	return base, segName(base) == filepath.Base(name)
}
