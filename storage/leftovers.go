package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

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

// remains is what lies behind the place where a log stops.
type remains struct {
	any   bool         // there are headers of frames of their own position
	proof *frameHeader // of a whole frame that vouches for what should be at that place; nil: it may be a torn tail
}

// vouches says what a frame's note proves.
func (h *frameHeader) vouches() string {
	return fmt.Sprintf("the frame at journal position %d was written when all before %d was on stable storage", h.position, h.durable)
}

var errFound = errors.New("found") // ends a search

// behind looks at what lies behind the file offset off, where no frame can follow t. A frame there that was written after
// a sync of more than t holds proves that frames are damaged or gone: a power cut takes only what was never synced.
//
// Guarantee 3.
func (s *scanner) behind(off int64, base uint64, t *tail) (r remains, err error) {
	check := &scanner{file: s.file, size: s.size}
	err = s.leftovers(off, base, func(at int64) error {
		r.any = true
		h, err := check.whole(at, base, func(h *frameHeader) bool { return h.durable > t.pos && t.before(h) })
		if r.proof = h; h != nil && err == nil {
			err = errFound
		}
		return err
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return r, err
}

// damaged describes what is where the frame behind t should be, up to the first whole frame behind, or else up to the file
// offset end.
func (s *scanner) damaged(seg *segment, t *tail, end int64, reason string) error {
	check := &scanner{file: s.file, size: s.size}
	err := s.leftovers(seg.size, seg.base, func(at int64) error {
		h, err := check.whole(at, seg.base, t.before)
		if h != nil && err == nil {
			end, err = at, errFound
		}
		return err
	})
	if err != nil && !errors.Is(err, errFound) {
		return fmt.Errorf("reading %s: %w", seg.path, err)
	}
	return seg.damage(seg.size, end, reason)
}

// whole returns the header of the frame at a file offset, if it is one that is wanted and all its checksums hold.
func (s *scanner) whole(at int64, base uint64, wanted func(*frameHeader) bool) (*frameHeader, error) {
	head, err := s.bytes(at, frameHeaderBytes)
	if err != nil {
		return nil, err
	}
	h, ok := parseFrameHeader(head, base+uint64(at))
	if !ok || !wanted(&h) {
		return nil, nil
	}
	frame, err := s.bytes(at, int(h.length))
	if err != nil || len(frame) < int(h.length) || !h.checkDirectory(frame) || h.checkPayload(frame) != "" {
		return nil, err
	}
	return &h, nil
}
