package storage

import (
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

// reason says why there is no frame that can be taken.
func (v *verdict) reason() string {
	if v.zero {
		return "there is no frame"
	}
	return v.alien + v.broken
}

// next judges the bytes at file offset off, where the frame behind t should be. All of them are checked: the headers of
// batches, which only their own checksums cover, say what producers and transactions do.
func (s *scanner) next(off int64, t *tail) (verdict, error) {
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
	if v.broken = h.checkPayload(frame); v.broken == "" {
		if v.alien = t.links(&h); v.alien == "" {
			v.alien = denseOffsets(frame, &h, t)
		}
		v.frame = frame
	}
	return v, nil
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

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
