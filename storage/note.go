package storage

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame's note says up to where this replica's log was on stable storage when it wrote the frame. It is what tells
// damage from a torn tail where the mark is older than the truth: a whole frame whose note vouches for a place where no
// frame can be read proves that one was there. It costs no write and no sync of its own.
//
// The note is the only part of a frame that replicas do not share: the frame's checksum takes it as zero, and a frame
// that is handed on has none. Its first three bytes are 1 + the distance from that point to the frame, in units of
// frameAlign, its last one is what makes the exclusive or of all four zero. Zero says nothing.
const (
	noteAt    = 52
	noteBytes = 4
)

// putNote writes into a frame's header that all before durable was on stable storage.
func putNote(head []byte, position, durable uint64) {
	n := (position-durable)/frameAlign + 1
	if durable > position || n >= 1<<24 {
		n = 0
	}
	head[noteAt+3] = byte(n) ^ byte(n>>8) ^ byte(n>>16)
	head[noteAt], head[noteAt+1], head[noteAt+2] = byte(n), byte(n>>8), byte(n>>16)
}

// readNote returns the point that a frame's note names, 0 if it names none. ok is false if the bytes are no note.
func readNote(head []byte, position uint64) (durable uint64, ok bool) {
	b := head[noteAt : noteAt+noteBytes]
	if b[0]^b[1]^b[2]^b[3] != 0 {
		return 0, false
	}
	n := uint64(binary.LittleEndian.Uint32(b) & 0xffffff)
	if n == 0 {
		return 0, true
	}
	back := (n - 1) * frameAlign
	return position - min(back, position), back <= position
}

// clearNote makes a frame what all replicas have.
func clearNote(head []byte) { clear(head[noteAt : noteAt+noteBytes]) }

// frameSum is the checksum of a frame's header and directory, which end at n.
func frameSum(frame []byte, n int) uint32 {
	var none [noteBytes]byte
	sum := crc32.Update(crc32.Checksum(frame[12:noteAt], castagnoli), castagnoli, none[:])
	return crc32.Update(sum, castagnoli, frame[noteAt+noteBytes:n])
}
