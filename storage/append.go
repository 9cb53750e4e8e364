package storage

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
)

// appender is the writer's working memory, used again for each StoreLogs. Guarded by Journal.wmu.
type appender struct {
	heads   []byte // frame headers, directories and padding; buffers point into it
	buffers [][]byte
	frames  []builtFrame
	staged  []stagedBatch
	aborted []abortedIn // transactions aborted in the current segment
}

// builtFrame is a frame that is ready to be written.
type builtFrame struct {
	header frameHeader
	staged int // end of its batches
}

// stagedBatch is a batch that becomes readable once its frame is written.
type stagedBatch struct {
	partition    uint32
	at           uint32 // offset in its frame
	length       uint32
	offset, next int64
	maxTimestamp int64
	event        txnEvent
}

func (a *appender) clear() {
	clear(a.buffers) // they hold the producers' memory
	a.heads, a.buffers, a.frames, a.staged = a.heads[:0], a.buffers[:0], a.frames[:0], a.staged[:0]
}

// head returns n zero bytes that stay where they are.
func (a *appender) head(n int) []byte {
	if len(a.heads)+n > cap(a.heads) {
		a.heads = make([]byte, 0, max(2*cap(a.heads), n, 64<<10)) // buffers keep the old array alive
	}
	a.heads = a.heads[:len(a.heads)+n]
	b := a.heads[len(a.heads)-n:]
	clear(b)
	return b[:n:n]
}

// StoreLog implements raft.LogStore.
func (j *Journal) StoreLog(log *raft.Log) error { return j.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. On the leader the entries are proposals made by Propose, and here their batches
// get their offsets; on a follower each brings its frame in Extensions, which is checked and stored as it is. Any error
// but ErrDiskFull makes the journal read-only.
func (j *Journal) StoreLogs(logs []*raft.Log) error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	if err := j.makeRoom(logs); err != nil {
		return err // nothing was done yet
	}
	if err := j.storeLogs(logs); err != nil {
		return j.fail(err)
	}
	return nil
}

// makeRoom allocates what was not reserved: raft's own entries, and on a follower all.
func (j *Journal) makeRoom(logs []*raft.Log) error {
	var n int64
	for _, l := range logs {
		if p := j.proposals.get(l); p == nil || j.o.Commands {
			n += frameBytes(0, int64(max(len(l.Data), len(l.Extensions))))
		}
	}
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	if n == 0 {
		return nil
	}
	// Within the headroom there is nothing to do, which is what the headroom is for.
	if s := &j.space; s.used+s.reserved+n <= s.alloc {
		return nil
	}
	return j.ensure(n)
}

func (j *Journal) storeLogs(logs []*raft.Log) error {
	a := &j.app
	a.clear()
	defer a.clear()
	for _, l := range logs {
		// Rolling comes before building: the sealed segment's index holds the state exactly at its end.
		if n := j.frameBound(l); !j.fits(n) {
			if err := j.writeFrames(); err != nil {
				return err
			}
			if err := j.roll(n); err != nil {
				return err
			}
		}
		if err := j.buildFrame(l); err != nil {
			return err
		}
	}
	if err := j.writeFrames(); err != nil {
		return err
	}
	if j.o.Mode == Durable {
		return j.syncTail()
	}
	j.wakeFlusher()
	return nil
}

// frameBound is the most bytes the entry's frame can have. Duplicates that are left out make it smaller.
func (j *Journal) frameBound(l *raft.Log) int64 {
	if len(l.Extensions) > 0 {
		return int64(len(l.Extensions))
	}
	if p := j.proposals.get(l); p != nil {
		return frameBytes(len(p.Batches), p.bytes)
	}
	return frameBytes(0, int64(len(l.Data)))
}

// fits says whether n more bytes end within what is allocated of the current segment.
func (j *Journal) fits(n int64) bool {
	used := int64(j.tail.pos - j.current().base)
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	return used+n <= j.space.alloc
}

// buildFrame makes the frame of one raft entry and moves the tail behind it.
func (j *Journal) buildFrame(l *raft.Log) error {
	if j.tail.index != 0 && l.Index != j.tail.index+1 {
		return fmt.Errorf("raft index %d follows %d", l.Index, j.tail.index)
	}
	if l.Term > maxLeaderTerm {
		return fmt.Errorf("term %d is out of range", l.Term)
	}
	switch p := j.proposals.get(l); {
	case len(l.Extensions) > 0:
		return j.buildReceived(l)
	case p != nil:
		j.buildBatches(l, p)
		return nil
	}
	typ, ok := frameTypeOf(l.Type)
	if !ok || typ == frameCommand && !j.o.Commands {
		return fmt.Errorf("raft entry %d of type %v is no proposal of this process", l.Index, l.Type)
	}
	j.buildOpaque(l, typ)
	return nil
}

// header starts a frame behind the tail.
func (j *Journal) header(l *raft.Log, typ frameType) frameHeader {
	h := frameHeader{
		typ: typ, index: l.Index, term: l.Term, position: j.tail.pos, prevCRC: j.tail.crc,
		stamp: max(j.tail.stamp, j.o.Now().UnixMicro()),
	}
	if l.Index == 1 && typ == frameConfig {
		h.stamp = 0 // each member writes the group's first entry itself, and the frames must be the same
	}
	return h
}

// buildOpaque makes a frame with a payload that is not looked into.
func (j *Journal) buildOpaque(l *raft.Log, typ frameType) {
	h := j.header(l, typ)
	h.count, h.payloadCRC = uint32(len(l.Data)), crc32.Checksum(l.Data, castagnoli)
	h.length = uint32(aligned(frameHeaderBytes + len(l.Data)))
	head := j.app.head(frameHeaderBytes)
	h.put(head)
	j.app.buffers = append(j.app.buffers, head, l.Data, j.app.head(int(h.length)-frameHeaderBytes-len(l.Data)))
	j.finish(h, l.Data)
}

// buildBatches makes the frame of a proposal: here, and only here, batches get their offsets. Duplicates and batches
// that break their producer's sequence are answered and left out.
func (j *Journal) buildBatches(l *raft.Log, p *Proposal) {
	a := &j.app
	h := j.header(l, frameBatches)
	head := a.head(frameHeaderBytes + len(p.Batches)*dirEntryBytes)
	slot := len(a.buffers)
	a.buffers = append(a.buffers, head)
	firstStaged := len(a.staged)
	bytes := 0
	for _, b := range p.Batches {
		b.Stamp = h.stamp
		offset, dup, err := j.tail.check(b.Partition, b.header)
		if err != nil || dup {
			b.Offset, b.Duplicate, b.Err = offset, dup, err
			continue
		}
		base := j.tail.next[b.Partition]
		stamp(b.Data, base, uint32(l.Term))
		b.Offset = base
		d := dirEntry{
			partition: b.Partition, length: uint32(len(b.Data)), baseOffset: base,
			records: uint32(b.header.Records), crc: b.header.CRC, maxTimestamp: b.header.MaxTimestamp,
		}
		d.put(head[frameHeaderBytes+int(h.count)*dirEntryBytes:])
		h.count++
		event := j.tail.addBatch(b.Partition, b.header, base, h.stamp, b.Data)
		a.staged = append(a.staged, stagedBatch{
			partition: b.Partition, at: uint32(bytes), length: uint32(len(b.Data)),
			offset: base, next: base + int64(b.header.Records), maxTimestamp: b.header.MaxTimestamp, event: event,
		})
		a.buffers = append(a.buffers, b.Data)
		bytes += len(b.Data)
	}
	bodyAt := frameHeaderBytes + h.dirBytes()
	for i := range a.staged[firstStaged:] {
		a.staged[firstStaged+i].at += uint32(bodyAt)
	}
	h.length = uint32(aligned(bodyAt + bytes))
	h.put(head)
	a.buffers[slot] = head[:bodyAt]
	a.buffers = append(a.buffers, a.head(int(h.length)-bodyAt-bytes))
	j.finish(h, nil)
}

// buildReceived checks a frame that the leader sent, and takes it as it is.
func (j *Journal) buildReceived(l *raft.Log) error {
	frame := l.Extensions
	h, ok := parseFrameHeader(frame, j.tail.pos)
	switch {
	case !ok || int(h.length) != len(frame) || !h.checkDirectory(frame):
		return fmt.Errorf("frame of raft entry %d for journal position %d is damaged or for another position", l.Index, j.tail.pos)
	case h.index != l.Index || h.term != l.Term:
		return fmt.Errorf("frame of raft entry %d in term %d says it is %d in term %d", l.Index, l.Term, h.index, h.term)
	}
	reason := h.checkPayload(frame)
	if reason == "" {
		reason = j.tail.links(&h)
	}
	if reason == "" {
		reason = denseOffsets(frame, &h, j.tail)
	}
	if reason != "" {
		return fmt.Errorf("frame of raft entry %d at journal position %d does not fit: %s", l.Index, h.position, reason)
	}
	at := frameHeaderBytes + h.dirBytes()
	if h.typ != frameBatches {
		j.app.buffers = append(j.app.buffers, frame)
		j.finish(h, frame[at:at+int(h.count)])
		return nil
	}
	for i := range int(h.count) {
		d := entryAt(frame, i)
		data := frame[at : at+int(d.length)]
		event := j.tail.addBatch(d.partition, parseHeader(data), d.baseOffset, h.stamp, data)
		j.app.staged = append(j.app.staged, stagedBatch{
			partition: d.partition, at: uint32(at), length: d.length,
			offset: d.baseOffset, next: d.baseOffset + int64(d.records), maxTimestamp: d.maxTimestamp, event: event,
		})
		at += int(d.length)
	}
	j.app.buffers = append(j.app.buffers, frame)
	j.finish(h, nil)
	return nil
}

func (j *Journal) finish(h frameHeader, payload []byte) {
	j.tail.addFrame(&h, payload)
	j.app.frames = append(j.app.frames, builtFrame{header: h, staged: len(j.app.staged)})
}

// writeFrames writes the built frames at the end of the current segment and makes them known to readers.
func (j *Journal) writeFrames() error {
	a := &j.app
	if len(a.frames) == 0 {
		return nil
	}
	seg := j.current()
	off := int64(a.frames[0].header.position - seg.base)
	if _, err := seg.file.WritevAt(a.buffers, off); err != nil {
		return fmt.Errorf("writing %s: %w", seg.path, err)
	}
	j.publish(seg)
	a.clear()
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	j.space.used = seg.size
	return nil
}

// current is the segment that is written to. The caller holds wmu.
func (j *Journal) current() *segment { return j.index.segs[len(j.index.segs)-1] }

// publish adds written frames to the index.
func (j *Journal) publish(seg *segment) {
	a, staged := &j.app, 0
	visible := j.visible()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range a.frames {
		f := &a.frames[i]
		rel := uint32(f.header.position - seg.base)
		for ; staged < f.staged; staged++ {
			b := &a.staged[staged]
			p := j.index.parts[b.partition]
			if p == nil {
				p = &partition{}
				j.index.parts[b.partition] = p
			}
			p.add(seg, loc{offset: b.offset, rel: rel + b.at, length: b.length}, b.next, b.maxTimestamp)
			if b.event.kind != txnNone {
				p.txns.note(b.event, f.header.position, visible)
				a.aborted = b.event.addAborted(a.aborted, b.partition)
			}
		}
		seg.add(&f.header)
	}
	j.index.end = seg.end()
}

// roll seals the current segment and starts the next one, with room for a frame of n bytes. Nothing may be built that
// is not written.
func (j *Journal) roll(n int64) error {
	seg := j.current()
	if len(seg.entries) == 0 { // it would get the same name again
		return j.growEmpty(n)
	}
	if err := seg.file.Sync(); err != nil { // a sealed segment is on stable storage as a whole
		return fmt.Errorf("syncing %s: %w", seg.path, err)
	}
	if err := j.raiseDurable(seg.end()); err != nil {
		return err
	}
	next, alloc, err := j.nextSegment(seg.end(), n)
	if err != nil {
		return err
	}
	j.sealCurrent(seg, next)
	j.space.setCurrent(next, alloc)
	return nil
}

// growEmpty makes room for n bytes in a current segment that holds nothing.
func (j *Journal) growEmpty(n int64) error {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	need := n + j.headroom()
	if need <= s.alloc {
		return nil
	}
	if err := j.allocate(s.cur.file, s.alloc, need); err != nil {
		return err
	}
	s.alloc = need
	return nil
}

// nextSegment puts a spare file at position, or a new one if there is none with room.
func (j *Journal) nextSegment(position uint64, n int64) (*segment, int64, error) {
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == nil {
		if err := j.makeSpare(); err != nil {
			return nil, 0, err
		}
	}
	if need := n + j.headroom(); s.spareLen < need {
		if err := j.allocate(s.spare, s.spareLen, need); err != nil {
			return nil, 0, err
		}
		s.spareLen = need
	}
	path := filepath.Join(j.dir, segName(position))
	if err := j.fsys.Rename(s.spareAt, path); err != nil {
		return nil, 0, fmt.Errorf("starting segment %s: %w", path, err)
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return nil, 0, fmt.Errorf("starting segment %s: %w", path, err)
	}
	seg := &segment{base: position, path: path, file: s.spare, prev: j.current().lastCRC, lastCRC: j.current().lastCRC, discard: closeSegment}
	seg.acquire()
	alloc := s.spareLen
	s.spare = nil
	return seg, alloc, nil
}

// sealCurrent closes a segment's index and puts next behind it.
func (j *Journal) sealCurrent(seg, next *segment) {
	j.tail.expire()
	j.mu.Lock()
	x := buildIndex(seg, j.index.parts, j.tail, j.app.aborted)
	seg.table.Store(x.table)
	j.index.segs = append(j.index.segs, next)
	j.mu.Unlock()
	j.app.aborted = nil
	j.cache.add(seg)
	j.writeIndex(x)
}

// buildIndex makes the index of a segment that is full. The caller holds mu.
func buildIndex(seg *segment, parts map[uint32]*partition, end *tail, aborted []abortedIn) *segIndex {
	t, rows := seal(seg, parts)
	return &segIndex{seg: seg, spans: rows, aborted: aborted, end: end, table: t, locs: len(t.locs), blocks: len(t.blocks)}
}

// writeIndex writes the index file of a sealed segment. It is a cache: without it the segment is read at the next
// start.
func (j *Journal) writeIndex(x *segIndex) {
	path := idxPath(x.seg.path)
	err := writeCache(j.fsys, path, x.encode())
	if err != nil {
		j.o.Logger.Warn("index file not written; the next start reads the segment instead", "file", path, "error", err)
	}
}

func writeCache(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
