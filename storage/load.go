package storage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// loadedLog is a log as it was found on disk.
type loadedLog struct {
	index   index
	tail    *tail
	aborted []abortedIn // in the segment being read
	alloc   int64       // size of the last segment's file
	sealed  Front       // where the last segment starts
}

// loadLog reads the log of the segments with these bases: the sealed ones from their indexes where those can be
// believed, the last one frame by frame; the last one's torn tail is cut.
func loadLog(j *Journal, bases []uint64, was marked) (l *loadedLog, err error) {
	l = startOf(j)
	defer func() {
		if err != nil {
			l.abandon()
		}
	}()
	front := j.start.front
	if len(bases) == 0 { // 4
		if was.durable > front.pos {
			return l, &DamageError{File: j.dir, Position: front.pos, End: was.durable, Reason: "all segments are missing"}
		}
		bases = []uint64{front.pos}
	} else if bases[0] != front.pos {
		return l, &DamageError{File: filepath.Join(j.dir, segName(front.pos)), Position: front.pos, End: bases[0], Reason: "the first segment is missing"}
	}
	for i, base := range bases {
		seg, err := j.openSegment(base)
		if err != nil {
			return l, err
		}
		seg.prev, seg.lastCRC = l.tail.crc, l.tail.crc
		l.index.segs = append(l.index.segs, seg)
		if i < len(bases)-1 {
			err = l.loadSealed(j, seg, bases[i+1]) // 5
		} else {
			t := l.tail
			l.sealed = Front{Position: t.pos, Index: t.index, Term: t.term, ConfigIndex: t.configIndex, Config: t.config}
			err = l.loadLast(j, seg, was) // 6
		}
		if err != nil {
			return l, err
		}
	}
	last := l.index.segs[len(bases)-1]
	if l.tail.pos < was.durable {
		return l, &DamageError{File: last.path, Offset: last.size, Position: l.tail.pos, End: was.durable,
			Reason: fmt.Sprintf("the log ends here, but was on stable storage up to %d", was.durable)}
	}
	if why := j.start.endsEarly(l.index.lastIndex()); why != "" {
		return l, &DamageError{File: last.path, Offset: last.size, Position: l.tail.pos, Reason: why}
	}
	l.index.end = l.tail.pos
	if !j.o.Commands {
		l.noteTrims()
	}
	return l, nil
}

// startOf is a log of which nothing is read but where it starts.
func startOf(j *Journal) *loadedLog {
	front := j.start.front
	l := &loadedLog{tail: front.clone(), index: index{parts: map[uint32]*partition{}, front: *front}}
	for id, next := range front.next {
		l.part(id).end = next
	}
	for k, p := range front.producers {
		if p.txn >= 0 {
			l.part(k.partition).txns.begin(k.id, p.txn)
		}
	}
	for id, start := range j.start.starts {
		l.part(id).start = start
	}
	return l
}

func (l *loadedLog) part(id uint32) *partition {
	p := l.index.parts[id]
	if p == nil {
		p = &partition{}
		l.index.parts[id] = p
	}
	return p
}

func (l *loadedLog) abandon() {
	for _, s := range l.index.segs {
		s.discard = closeSegment
		s.release()
	}
}

// openSegment opens or creates the file of the segment at base.
func (j *Journal) openSegment(base uint64) (*segment, error) {
	path := filepath.Join(j.dir, segName(base))
	f, err := j.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s := &segment{base: base, path: path, file: f, discard: closeSegment}
	s.acquire()
	return s, nil
}

// loadSealed takes a segment that ends at the position end, from its index or else from its frames.
func (l *loadedLog) loadSealed(j *Journal, seg *segment, end uint64) error {
	x, err := readIndex(j.fsys, seg)
	if err == nil && seg.prev == l.tail.crc && seg.end() == end && l.confirm(seg) {
		l.adopt(x)
		return nil
	}
	if err != nil && !errors.Is(err, errNoIndex) {
		return err
	}
	*seg = segment{base: seg.base, path: seg.path, file: seg.file, discard: seg.discard, prev: l.tail.crc, lastCRC: l.tail.crc}
	seg.acquire()
	stop, err := l.scan(seg, int64(end-seg.base))
	if err != nil {
		return err
	}
	if seg.end() != end {
		sc := &scanner{file: seg.file, size: int64(end - seg.base)}
		return sc.damaged(seg, l.tail, sc.size, stop.reason())
	}
	l.tail.expire()
	rebuilt := buildIndex(seg, l.index.parts, l.tail, l.aborted)
	seg.table.Store(rebuilt.table)
	j.cache.add(seg)
	j.writeIndex(rebuilt)
	return nil
}

// confirm says whether the segment's last frame is the one its index knows, and the file is as long. By the chain of
// checksums that vouches for all frames before it.
func (l *loadedLog) confirm(seg *segment) bool {
	if size, err := seg.file.Size(); err != nil || size < seg.size {
		return false
	}
	n := len(seg.entries)
	if n == 0 {
		return seg.lastCRC == l.tail.crc
	}
	e := seg.entries[n-1]
	var buf [frameHeaderBytes]byte
	if int64(e.rel) >= seg.size {
		return false
	}
	if _, err := seg.file.ReadAt(buf[:], int64(e.rel)); err != nil {
		return false
	}
	h, ok := parseFrameHeader(buf[:], seg.base+uint64(e.rel))
	return ok && h.crc == seg.lastCRC && int64(e.rel)+int64(h.length) == seg.size && h.index == seg.last()
}

// adopt takes the index of a sealed segment over.
func (l *loadedLog) adopt(x *segIndex) {
	for _, r := range x.spans {
		p := l.part(r.partition)
		p.spans = append(p.spans, *r.span)
		p.end = r.span.next
	}
	for id, next := range x.end.next {
		l.part(id).end = next
	}
	for _, a := range x.aborted {
		t := &l.part(a.partition).txns
		t.aborted = append(t.aborted, a.Aborted)
	}
	for _, p := range l.index.parts {
		p.txns.open = nil
	}
	for k, p := range x.end.producers {
		if p.txn >= 0 {
			l.part(k.partition).txns.begin(k.id, p.txn)
		}
	}
	l.tail = x.end
}

// scan adds the frames of a segment to the index until something else is found, or the file offset limit is reached.
func (l *loadedLog) scan(seg *segment, limit int64) (verdict, error) {
	size, err := seg.file.Size()
	if err != nil {
		return verdict{}, err
	}
	sc := &scanner{file: seg.file, size: min(size, limit)}
	l.aborted = nil
	for {
		v, err := sc.next(seg.size, l.tail)
		if err != nil {
			return v, fmt.Errorf("reading %s at %d: %w", seg.path, seg.size, err)
		}
		if v.frame == nil || v.alien != "" {
			v.frame = nil
			return v, nil
		}
		l.addFrame(seg, &v.header, v.frame)
	}
}

// addFrame adds a checked frame to the index.
func (l *loadedLog) addFrame(seg *segment, h *frameHeader, frame []byte) {
	at := frameHeaderBytes + h.dirBytes()
	if h.typ != frameBatches {
		seg.add(h)
		l.tail.addFrame(h, frame[at:at+int(h.count)])
		return
	}
	rel := uint32(h.position - seg.base)
	for i := range int(h.count) {
		d := entryAt(frame, i)
		data := frame[at : at+int(d.length)]
		bh := parseHeader(data)
		p := l.part(d.partition)
		event := l.tail.addBatch(d.partition, bh, d.baseOffset, h.stamp, data)
		p.add(seg, loc{offset: d.baseOffset, rel: rel + uint32(at), length: d.length}, d.baseOffset+int64(d.records), d.maxTimestamp)
		p.txns.note(event, h.position, 0)
		l.aborted = event.addAborted(l.aborted, d.partition)
		at += int(d.length)
	}
	seg.add(h)
	l.tail.addFrame(h, nil)
}

// loadLast takes the segment that is written to, and cuts what lies behind its last whole frame.
func (l *loadedLog) loadLast(j *Journal, seg *segment, was marked) error {
	stop, err := l.scan(seg, math.MaxInt64)
	if err != nil {
		return err
	}
	if stop.alien != "" { // a whole frame in its own place that does not follow is never the end of a log
		return seg.damage(seg.size, seg.size+int64(stop.header.length), "frame is whole, but "+stop.alien)
	}
	size, err := seg.file.Size()
	if err != nil {
		return err
	}
	l.alloc = size &^ (frameAlign - 1)
	if was.state == markClosed && was.durable == l.tail.pos {
		return nil
	}
	if l.tail.pos < was.durable && stop.zero {
		return nil // the caller reports it
	}
	sc := &scanner{file: seg.file, size: size}
	left, err := sc.behind(seg.size, seg.base, l.tail)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", seg.path, err)
	case left.proof != nil && was.state != markCutting:
		return sc.damaged(seg, l.tail, int64(left.proof.position-seg.base), stop.reason()+", but "+left.proof.vouches())
	case l.tail.pos < was.durable:
		return sc.damaged(seg, l.tail, int64(was.durable-seg.base), stop.reason())
	}
	if left.any {
		if err := cutLeftovers(seg, seg.size, size); err != nil {
			return err
		}
	}
	return seg.file.Sync() // frames above durable are only now known to be on stable storage
}

// cutLeftovers overwrites the headers of all frames behind off that could come to life again.
func cutLeftovers(seg *segment, off, size int64) error {
	sc := &scanner{file: seg.file, size: size}
	var zero [frameHeaderBytes]byte
	return sc.leftovers(off, seg.base, func(at int64) error {
		_, err := seg.file.WriteAt(zero[:min(frameHeaderBytes, size-at)], at)
		return err
	})
}
