package storage

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/daybook-data/daybook/internal/vfs"
)

const scanBuffer = 1 << 20

// scanner reads a segment's frames one after the other. The bytes it returns are valid until the next call.
type scanner struct {
	file vfs.File
	size int64 // of the file
	buf  []byte
	at   int64 // file offset of buf
}

// bytes returns n bytes at off, or what the file has of them.
func (s *scanner) bytes(off int64, n int) ([]byte, error) {
	n = int(min(int64(n), max(0, s.size-off)))
	if off >= s.at && off+int64(n) <= s.at+int64(len(s.buf)) {
		return s.buf[off-s.at:][:n], nil
	}
	want := int(min(int64(max(n, scanBuffer)), s.size-off))
	if want <= 0 {
		return nil, nil
	}
	if cap(s.buf) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.at = s.buf[:want], off
	m, err := s.file.ReadAt(s.buf, off)
	if err != nil && err != io.EOF {
		s.buf = s.buf[:0]
		return nil, err
	}
	s.buf = s.buf[:m]
	return s.buf[:min(n, m)], nil
}

// verdict is what a scanner found where a frame should be.
type verdict struct {
	frame  []byte      // the whole frame if it is good
	header frameHeader // of the frame, if there is the header of one
	zero   bool        // nothing was ever written here
	broken string      // what is wrong with the bytes
	alien  string      // the frame is whole but cannot follow the one before: never the end of a log
}

// next judges the bytes at file offset off, where the frame behind t should be. With full false the batches' bodies
// are not read into the checksum.
func (s *scanner) next(off int64, t *tail, full bool) (verdict, error) {
	head, err := s.bytes(off, frameHeaderBytes)
	if err != nil {
		return verdict{}, err
	}
	if allZero(head) {
		return verdict{zero: true}, nil
	}
	h, ok := parseFrameHeader(head, t.pos)
	if !ok {
		return verdict{broken: "there is no frame header of this position"}, nil
	}
	v := verdict{header: h}
	if off+int64(h.length) > s.size {
		v.broken = fmt.Sprintf("frame of %d bytes runs over the end of the file", h.length)
		return v, nil
	}
	frame, err := s.bytes(off, int(h.length))
	if err != nil {
		return verdict{}, err
	}
	if len(frame) < int(h.length) || !h.checkDirectory(frame) {
		v.broken = "header checksum does not match"
		return v, nil
	}
	if full || h.typ != frameBatches {
		v.broken = h.checkPayload(frame)
	} else {
		v.broken = h.checkHeaders(frame)
	}
	if v.broken == "" {
		if v.alien = t.links(&h); v.alien == "" {
			v.alien = denseOffsets(frame, &h, t)
		}
		v.frame = frame
	}
	return v, nil
}

// checkHeaders is checkPayload without the batches' checksums.
func (h *frameHeader) checkHeaders(frame []byte) string {
	at := frameHeaderBytes + h.dirBytes()
	for i := range int(h.count) {
		d := entryAt(frame, i)
		if d.length < batchHeaderBytes || uint64(at)+uint64(d.length) > uint64(len(frame)) {
			return fmt.Sprintf("batch %d of %d bytes runs over the frame's end", i, d.length)
		}
		b := parseHeader(frame[at:])
		if b.Magic != 2 || b.Size() != int(d.length) || b.BaseOffset != d.baseOffset || b.CRC != d.crc || uint32(b.Records) != d.records {
			return fmt.Sprintf("batch %d: header differs from the frame's directory", i)
		}
		at += int(d.length)
	}
	return checkPadding(frame[at:])
}

// denseOffsets says why the frame's batches cannot follow what t holds, or "".
func denseOffsets(frame []byte, h *frameHeader, t *tail) string {
	if h.typ != frameBatches {
		return ""
	}
	var seen map[uint32]int64
	for i := range int(h.count) {
		d := entryAt(frame, i)
		want, ok := seen[d.partition]
		if !ok {
			want = t.next[d.partition]
		}
		if d.baseOffset != want || d.records == 0 {
			return fmt.Sprintf("batch %d: partition %d goes on at offset %d, the batch is at %d", i, d.partition, want, d.baseOffset)
		}
		if seen == nil {
			seen = make(map[uint32]int64, h.count)
		}
		seen[d.partition] = d.baseOffset + int64(d.records)
	}
	return ""
}

// leftovers calls found with every file offset from off on that holds a frame header of its own position. Beyond the
// end of the log there must be none, or it could come to life again once the log has grown up to it.
func (s *scanner) leftovers(off int64, base uint64, found func(off int64) error) error {
	le := binary.LittleEndian
	for off = int64(aligned(int(off))); off < s.size; {
		b, err := s.bytes(off, scanBuffer)
		if err != nil {
			return err
		}
		n := len(b) &^ (frameAlign - 1)
		if n == 0 {
			return nil
		}
		for i := 0; i+40 <= len(b) && i < n; i += frameAlign {
			if le.Uint32(b[i:]) == frameMagic && le.Uint64(b[i+32:]) == base+uint64(off)+uint64(i) {
				if err := found(off + int64(i)); err != nil {
					return err
				}
			}
		}
		// The last units of the block may hold a header whose position lies in the next one.
		if next := off + int64(n) - 48; n > 48 && off+int64(n) < s.size {
			off = next
		} else {
			off += int64(n)
		}
	}
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
