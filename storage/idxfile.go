package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"

	"github.com/daybook-data/daybook/internal/vfs"
)

// A sealed segment's index file is a cache: everything in it follows from the segment and the index of the segment
// before. It is written without a sync and believed only if its checksums hold and its ends fit the chain of frames.
const (
	idxMagic       = 0x31494244 // "DBI1"
	idxVersion     = 1
	idxHeaderBytes = 96
)

// errNoIndex says that an index file is missing or not to be believed; the segment is read instead.
var errNoIndex = errors.New("no usable index file")

// abortedIn is an aborted transaction whose marker lies in the segment.
type abortedIn struct {
	partition uint32
	Aborted
}

// segIndex is the contents of an index file.
type segIndex struct {
	seg     *segment
	spans   []spanEntry
	aborted []abortedIn
	end     *tail  // the state behind the segment
	table   *table // nil unless the batch index was read as well
	locs    int
	blocks  int
}

// encode lays the file out: header, entries, spans, aborted, end state; then the batch index with a checksum of its
// own, because it is read later than the rest.
func (x *segIndex) encode() []byte {
	s := x.seg
	b := make([]byte, idxHeaderBytes, idxHeaderBytes+len(s.entries)*16+len(x.spans)*48+len(x.table.locs)*16+len(x.table.blocks)*8+4096)
	for _, e := range s.entries {
		b = put64(put32(put32(b, e.rel), uint32(e.typ)), uint64(e.term))
	}
	for _, r := range x.spans {
		b = put32(put32(b, r.partition), r.span.count)
		b = put64(put64(b, uint64(r.span.first)), uint64(r.span.next))
		b = put64(b, uint64(r.span.maxTimestamp))
		b = put64(put32(put32(b, r.span.at), r.span.blockAt), uint64(r.start))
	}
	for _, a := range x.aborted {
		b = put64(put32(put32(b, a.partition), 0), uint64(a.Producer))
		b = put64(put64(b, uint64(a.First)), uint64(a.Last))
	}
	b = x.end.encode(b)
	headBytes := len(b)
	for _, l := range x.table.locs {
		b = put32(put32(put64(b, uint64(l.offset)), l.rel), l.length)
	}
	for _, m := range x.table.blocks {
		b = put64(b, uint64(m))
	}

	le := binary.LittleEndian
	le.PutUint32(b[0:], idxMagic)
	le.PutUint32(b[4:], idxVersion)
	le.PutUint64(b[8:], s.base)
	le.PutUint64(b[16:], s.end())
	le.PutUint64(b[24:], s.first)
	le.PutUint32(b[32:], uint32(len(s.entries)))
	le.PutUint32(b[36:], uint32(len(x.spans)))
	le.PutUint32(b[40:], uint32(len(x.aborted)))
	le.PutUint32(b[44:], uint32(len(x.table.locs)))
	le.PutUint32(b[48:], uint32(len(x.table.blocks)))
	le.PutUint32(b[52:], s.prev)
	le.PutUint32(b[56:], s.lastCRC)
	le.PutUint64(b[60:], uint64(s.firstStamp))
	le.PutUint64(b[68:], uint64(s.lastStamp))
	le.PutUint32(b[76:], uint32(headBytes))
	le.PutUint32(b[80:], crc32.Checksum(b[headBytes:], castagnoli))
	le.PutUint32(b[92:], crc32.Update(crc32.Checksum(b[:92], castagnoli), castagnoli, b[idxHeaderBytes:headBytes]))
	return b
}

// readIndex fills seg from its index file, without the batch index. The error is errNoIndex if the file cannot be
// believed, or that of the disk.
func readIndex(fsys vfs.FS, seg *segment) (*segIndex, error) {
	f, err := fsys.OpenFile(idxPath(seg.path), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoIndex, err)
	}
	defer f.Close()
	header := make([]byte, idxHeaderBytes)
	if _, err := f.ReadAt(header, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoIndex, err)
	}
	le := binary.LittleEndian
	size, err := f.Size()
	headBytes := int64(le.Uint32(header[76:]))
	if err != nil || le.Uint32(header) != idxMagic || le.Uint32(header[4:]) != idxVersion ||
		headBytes < idxHeaderBytes || headBytes > size {
		return nil, errNoIndex
	}
	head := make([]byte, headBytes)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoIndex, err)
	}
	if crc32.Update(crc32.Checksum(head[:92], castagnoli), castagnoli, head[idxHeaderBytes:]) != le.Uint32(head[92:]) {
		return nil, errNoIndex
	}
	return decodeIndex(head, seg)
}

func decodeIndex(head []byte, seg *segment) (*segIndex, error) {
	le := binary.LittleEndian
	if le.Uint64(head[8:]) != seg.base || le.Uint64(head[16:]) < seg.base || le.Uint64(head[16:])-seg.base > math.MaxUint32 {
		return nil, errNoIndex
	}
	x := &segIndex{seg: seg, locs: int(le.Uint32(head[44:])), blocks: int(le.Uint32(head[48:]))}
	entries, spans, aborted := int(le.Uint32(head[32:])), int(le.Uint32(head[36:])), int(le.Uint32(head[40:]))
	seg.size, seg.first = int64(le.Uint64(head[16:])-seg.base), le.Uint64(head[24:])
	seg.prev, seg.lastCRC = le.Uint32(head[52:]), le.Uint32(head[56:])
	seg.firstStamp, seg.lastStamp = int64(le.Uint64(head[60:])), int64(le.Uint64(head[68:]))

	d := &decoder{buf: head[idxHeaderBytes:]}
	if int64(entries)*16+int64(spans)*48+int64(aborted)*32 > int64(len(d.buf)) {
		return nil, errNoIndex
	}
	seg.entries = make([]entry, entries)
	for i := range seg.entries {
		seg.entries[i] = entry{rel: d.u32(), typ: frameType(d.u32()), term: uint32(d.u64())}
	}
	x.spans = make([]spanEntry, spans)
	for i := range x.spans {
		s := &span{seg: seg}
		x.spans[i].partition, s.count = d.u32(), d.u32()
		s.first, s.next, s.maxTimestamp = int64(d.u64()), int64(d.u64()), int64(d.u64())
		s.at, s.blockAt = d.u32(), d.u32()
		x.spans[i].span, x.spans[i].start = s, int64(d.u64())
	}
	x.aborted = make([]abortedIn, aborted)
	for i := range x.aborted {
		x.aborted[i].partition, _ = d.u32(), d.u32()
		x.aborted[i].Aborted = Aborted{Producer: int64(d.u64()), First: int64(d.u64()), Last: int64(d.u64())}
	}
	var err error
	if x.end, err = decodeTail(d); err != nil {
		return nil, errNoIndex
	}
	return x, nil
}

// readTable reads the batch index of a sealed segment from its index file.
func readTable(fsys vfs.FS, seg *segment) (*table, error) {
	b, err := vfs.ReadFile(fsys, idxPath(seg.path))
	if err != nil || len(b) < idxHeaderBytes {
		return nil, fmt.Errorf("%w: %w", errNoIndex, err)
	}
	le := binary.LittleEndian
	head := int64(le.Uint32(b[76:]))
	locs, blocks := int64(le.Uint32(b[44:])), int64(le.Uint32(b[48:]))
	if le.Uint32(b) != idxMagic || le.Uint64(b[8:]) != seg.base || le.Uint32(b[56:]) != seg.lastCRC ||
		head < idxHeaderBytes || head+locs*16+blocks*8 != int64(len(b)) ||
		crc32.Update(crc32.Checksum(b[:92], castagnoli), castagnoli, b[idxHeaderBytes:head]) != le.Uint32(b[92:]) ||
		crc32.Checksum(b[head:], castagnoli) != le.Uint32(b[80:]) {
		return nil, errNoIndex
	}
	d := &decoder{buf: b[head:]}
	t := &table{locs: make([]loc, locs), blocks: make([]int64, blocks)}
	for i := range t.locs {
		t.locs[i] = loc{offset: int64(d.u64()), rel: d.u32(), length: d.u32()}
	}
	for i := range t.blocks {
		t.blocks[i] = int64(d.u64())
	}
	return t, d.err
}
