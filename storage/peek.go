package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Peek is a view of a journal's directory that changes nothing and takes no lock: it works on a disk that is mounted
// read-only, and beside the process that has the journal open. What that process writes or removes meanwhile may or may
// not be seen, but nothing is ever taken for something else: each frame names its own position. Not safe for concurrent
// use. It holds no open file.
type Peek struct {
	// Front is the journal position of the first frame that is kept, Durable the one up to which all is known to be on
	// stable storage.
	Front, Durable uint64
	// Starts are the partitions whose records below an offset were deleted by a user.
	Starts map[uint32]int64

	fsys  vfs.FS
	dir   string
	names []string
}

// SegmentInfo is what a segment holds.
type SegmentInfo struct {
	File       string                     `json:"file"`
	From       uint64                     `json:"from"` // journal positions
	To         uint64                     `json:"to"`
	Bytes      int64                      `json:"bytes"` // of the file, with what is allocated ahead
	Frames     int                        `json:"frames"`
	Batches    int                        `json:"batches"`
	Records    int64                      `json:"records"`
	First      time.Time                  `json:"first"` // leader's time of the first frame that has one: a group's very first has none
	Last       time.Time                  `json:"last"`
	Indexes    []string                   `json:"indexes"` // idx: batches and times, key, tag
	Partitions map[uint32]PartitionReport `json:"partitions"`
	Problems   []error                    `json:"-"` // of segments without a good index, which were read
}

// OpenPeek looks at the journal in dir.
func OpenPeek(fsys vfs.FS, dir string) (*Peek, error) {
	w, err := openWalk(fsys, dir, true)
	if err != nil {
		return nil, err
	}
	p := &Peek{Front: w.tail.pos, Durable: w.durable, fsys: fsys, dir: dir}
	if w.start != nil {
		p.Starts = w.start.starts
	}
	if p.names, err = fsys.ReadDir(dir); err != nil {
		return nil, err
	}
	return p, nil
}

// Segments describes the segments in order. Those without an index file are read.
func (p *Peek) Segments() (list []SegmentInfo, err error) {
	w, err := openWalk(p.fsys, p.dir, true)
	if err != nil {
		return nil, err
	}
	for i, base := range w.bases {
		info, err := p.segment(w, i)
		if errors.Is(err, os.ErrNotExist) {
			continue // retention took it
		}
		if err != nil {
			return nil, err
		}
		for _, name := range p.names {
			if stem, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name); stem+segSuffix == segName(base) && ext != segSuffix {
				info.Indexes = append(info.Indexes, strings.TrimPrefix(ext, "."))
			}
		}
		list = append(list, info)
	}
	return list, nil
}

func (p *Peek) segment(w *walk, i int) (SegmentInfo, error) {
	base := w.bases[i]
	path := filepath.Join(p.dir, segName(base))
	stat, err := p.fsys.Stat(path)
	if err != nil {
		return SegmentInfo{}, err
	}
	info := SegmentInfo{File: segName(base), From: base, To: base, Bytes: stat.Size(), Partitions: map[uint32]PartitionReport{}}
	seg := &segment{base: base, path: path}
	if i+1 < len(w.bases) {
		if x, err := readIndex(p.fsys, seg); err == nil && seg.end() == w.bases[i+1] {
			info.fill(x)
			if x.seg.firstStamp == 0 {
				info.First, err = p.firstStamp(w, base)
			}
			return info, err
		}
	}
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		info.add(h, frame)
		return nil
	}
	return info, p.walk(w, base, &info.Problems)
}

// firstStamp is the leader's time of the first frame in a segment that has one.
func (p *Peek) firstStamp(w *walk, base uint64) (at time.Time, err error) {
	w.each = func(_ *segment, h *frameHeader, _ []byte) error {
		if h.stamp == 0 {
			return nil
		}
		at = time.UnixMicro(h.stamp)
		return errFound
	}
	var problems []error // the index says what there is
	if err := p.walk(w, base, &problems); err != nil && !errors.Is(err, errFound) {
		return at, err
	}
	return at, nil
}

// fill takes what a sealed segment's index says.
func (s *SegmentInfo) fill(x *segIndex) {
	s.To, s.Frames = x.seg.end(), len(x.seg.entries)
	s.First, s.Last = time.UnixMicro(x.seg.firstStamp), time.UnixMicro(x.seg.lastStamp)
	for _, e := range x.spans {
		r := PartitionReport{First: e.span.first, Next: e.span.next, Batches: int(e.span.count), Records: e.span.next - e.span.first}
		s.Partitions[e.partition] = r
		s.Batches, s.Records = s.Batches+r.Batches, s.Records+r.Records
	}
}

// add counts a frame.
func (s *SegmentInfo) add(h *frameHeader, frame []byte) {
	if s.First.UnixMicro() <= 0 {
		s.First = time.UnixMicro(h.stamp)
	}
	s.Frames++
	s.Last, s.To = time.UnixMicro(h.stamp), h.position+uint64(h.length)
	for i := range h.dirBytes() / dirEntryBytes {
		d := entryAt(frame, i)
		r, known := s.Partitions[d.partition]
		if !known {
			r.First = d.baseOffset
		}
		r.Next = d.baseOffset + int64(d.records)
		r.Batches, r.Records = r.Batches+1, r.Records+int64(d.records)
		s.Partitions[d.partition] = r
		s.Batches, s.Records = s.Batches+1, s.Records+int64(d.records)
	}
}

// walk reads one segment's frames, whatever was before it. Faults of a segment that retention takes away meanwhile are
// none.
func (p *Peek) walk(w *walk, base uint64, problems *[]error) error {
	had := len(*problems)
	w.unlink(base)
	if err := w.segment(base, problems); err != nil {
		return err
	}
	if _, err := p.fsys.Stat(filepath.Join(p.dir, segName(base))); errors.Is(err, os.ErrNotExist) {
		*problems = (*problems)[:had]
	}
	return nil
}

// Commands calls f with the commands of a command log behind a raft index, in their order.
func (p *Peek) Commands(after uint64, f func(index uint64, data []byte) error) error {
	w, err := openWalk(p.fsys, p.dir, true)
	if err != nil {
		return err
	}
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		if h.typ != frameCommand || h.index <= after {
			return nil
		}
		at := frameHeaderBytes + h.dirBytes()
		return f(h.index, frame[at:at+int(h.count)])
	}
	for _, base := range w.bases {
		var problems []error
		if err := p.walk(w, base, &problems); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(problems) > 0 {
			return problems[0]
		}
	}
	return nil
}
