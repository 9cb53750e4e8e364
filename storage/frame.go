package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A frame is one raft entry. It has the same bytes on all replicas, on disk and on the wire, but for its note; FORMAT.md
// draws it.
const (
	frameMagic       = 0x314a4244 // "DBJ1"
	frameVersion     = 1
	frameHeaderBytes = 64
	dirEntryBytes    = 32
	frameAlign       = 16

	// maxFrameBytes bounds what a length field can make a reader allocate. A proposal is about 1 MiB, or one batch.
	maxFrameBytes = 16 << 20
)

// frameType says what a frame's payload is. Zero is no type, so that zeroes are no frame.
type frameType uint8

const (
	frameBatches frameType = 1 + iota // a directory and the record batches it lists
	frameNoop                         // a new leader's first entry
	frameConfig                       // the members of the group
	frameBarrier
	frameCommand // an opaque command of a state machine
)

func (t frameType) String() string {
	switch t {
	case frameBatches:
		return "batches"
	case frameNoop:
		return "noop"
	case frameConfig:
		return "config"
	case frameBarrier:
		return "barrier"
	case frameCommand:
		return "command"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// frameHeader is the fixed part of a frame.
type frameHeader struct {
	length     uint32 // of the whole frame, a multiple of frameAlign
	crc        uint32 // of the header from byte 12 on, without the note, and the directory
	typ        frameType
	index      uint64
	term       uint64
	position   uint64 // its own journal position
	count      uint32 // batches in the directory; of other types the bytes of payload
	payloadCRC uint32 // of other types than batches
	prevCRC    uint32 // crc of the frame before
	stamp      int64  // leader's time, µs
	durable    uint64 // what its note says; put writes none
}

// dirBytes is the length of the directory.
func (h *frameHeader) dirBytes() int {
	if h.typ == frameBatches {
		return int(h.count) * dirEntryBytes
	}
	return 0
}

// put writes the header and its checksum; buf holds the header and, behind it, the finished directory.
func (h *frameHeader) put(buf []byte) {
	le := binary.LittleEndian
	le.PutUint32(buf[0:], frameMagic)
	le.PutUint32(buf[4:], h.length)
	buf[12], buf[13] = byte(h.typ), 0
	le.PutUint16(buf[14:], frameVersion)
	le.PutUint64(buf[16:], h.index)
	le.PutUint64(buf[24:], h.term)
	le.PutUint64(buf[32:], h.position)
	le.PutUint32(buf[40:], h.count)
	le.PutUint32(buf[44:], h.payloadCRC)
	le.PutUint32(buf[48:], h.prevCRC)
	clearNote(buf)
	le.PutUint64(buf[56:], uint64(h.stamp))
	h.crc = frameSum(buf, frameHeaderBytes+h.dirBytes())
	le.PutUint32(buf[8:], h.crc)
}

// parseFrameHeader reads the fixed part and checks all that can be checked without the directory; ok is false if buf
// does not start with the header of a frame at position.
func parseFrameHeader(buf []byte, position uint64) (h frameHeader, ok bool) {
	if len(buf) < frameHeaderBytes {
		return h, false
	}
	le := binary.LittleEndian
	if le.Uint32(buf) != frameMagic || le.Uint64(buf[32:]) != position {
		return h, false
	}
	h = frameHeader{
		length:     le.Uint32(buf[4:]),
		crc:        le.Uint32(buf[8:]),
		typ:        frameType(buf[12]),
		index:      le.Uint64(buf[16:]),
		term:       le.Uint64(buf[24:]),
		position:   position,
		count:      le.Uint32(buf[40:]),
		payloadCRC: le.Uint32(buf[44:]),
		prevCRC:    le.Uint32(buf[48:]),
		stamp:      int64(le.Uint64(buf[56:])),
	}
	known := h.typ >= frameBatches && h.typ <= frameCommand && buf[13] == 0 && le.Uint16(buf[14:]) == frameVersion
	sized := h.length >= frameHeaderBytes && h.length <= maxFrameBytes && h.length%frameAlign == 0
	var noted bool
	if h.durable, noted = readNote(buf, position); !known || !sized || !noted {
		return h, false
	}
	inner := uint64(h.count)
	if h.typ == frameBatches {
		inner *= dirEntryBytes
	}
	return h, frameHeaderBytes+inner <= uint64(h.length)
}

// checkDirectory says whether the checksum over header and directory holds; buf must hold both.
func (h *frameHeader) checkDirectory(buf []byte) bool {
	n := frameHeaderBytes + h.dirBytes()
	return len(buf) >= n && frameSum(buf, n) == h.crc
}

// dirEntry describes one batch of a frame.
type dirEntry struct {
	partition    uint32
	length       uint32
	baseOffset   int64
	records      uint32
	crc          uint32
	maxTimestamp int64
}

func (d *dirEntry) put(buf []byte) {
	le := binary.LittleEndian
	_ = buf[dirEntryBytes-1]
	le.PutUint32(buf[0:], d.partition)
	le.PutUint32(buf[4:], d.length)
	le.PutUint64(buf[8:], uint64(d.baseOffset))
	le.PutUint32(buf[16:], d.records)
	le.PutUint32(buf[20:], d.crc)
	le.PutUint64(buf[24:], uint64(d.maxTimestamp))
}

func parseDirEntry(buf []byte) dirEntry {
	le := binary.LittleEndian
	_ = buf[dirEntryBytes-1]
	return dirEntry{
		partition:    le.Uint32(buf[0:]),
		length:       le.Uint32(buf[4:]),
		baseOffset:   int64(le.Uint64(buf[8:])),
		records:      le.Uint32(buf[16:]),
		crc:          le.Uint32(buf[20:]),
		maxTimestamp: int64(le.Uint64(buf[24:])),
	}
}

// entry returns the i-th entry of the directory in frame, which must have been checked.
func entryAt(frame []byte, i int) dirEntry {
	return parseDirEntry(frame[frameHeaderBytes+i*dirEntryBytes:])
}

// checkPayload checks everything behind the directory of a whole frame: that the batches fill it exactly, that each is
// what the directory says, and that the padding is zero. It returns what is wrong, or "".
func (h *frameHeader) checkPayload(frame []byte) string {
	at := frameHeaderBytes + h.dirBytes()
	if h.typ != frameBatches {
		at += int(h.count)
		if crc32.Checksum(frame[frameHeaderBytes:at], castagnoli) != h.payloadCRC {
			return "payload checksum does not match"
		}
		return checkPadding(frame[at:])
	}
	for i := range int(h.count) {
		d := entryAt(frame, i)
		if d.length < batchHeaderBytes || uint64(at)+uint64(d.length) > uint64(len(frame)) {
			return fmt.Sprintf("batch %d of %d bytes runs over the frame's end", i, d.length)
		}
		if reason := checkStored(frame[at:at+int(d.length)], d, h.term); reason != "" {
			return fmt.Sprintf("batch %d: %s", i, reason)
		}
		at += int(d.length)
	}
	return checkPadding(frame[at:])
}

// checkStored compares a batch's bytes with its directory entry and checksum. It returns what is wrong, or "".
func checkStored(data []byte, d dirEntry, term uint64) string {
	b := parseHeader(data)
	switch {
	case b.Magic != 2, b.Size() != len(data):
		return "header is damaged"
	case b.BaseOffset != d.baseOffset, uint32(b.LeaderEpoch) != uint32(term), b.CRC != d.crc,
		uint32(b.Records) != d.records, b.MaxTimestamp != d.maxTimestamp:
		return "header differs from the frame's directory"
	case crc32.Checksum(data[atAttributes:], castagnoli) != b.CRC:
		return "batch checksum does not match"
	}
	return ""
}

func checkPadding(pad []byte) string {
	if len(pad) >= frameAlign {
		return fmt.Sprintf("%d bytes behind the payload", len(pad))
	}
	for _, b := range pad {
		if b != 0 {
			return "padding is not zero"
		}
	}
	return ""
}

// aligned rounds n up to whole frame units.
func aligned(n int) int { return (n + frameAlign - 1) &^ (frameAlign - 1) }
