package cluster_test

import (
	"encoding/binary"
	"hash/crc32"
)

// forged is where a chain that was changed has got to.
type forged struct{ crc uint32 }

// forgeSegment changes the first batch that it meets, if none was changed before, and links all frames behind it to it:
// FORMAT.md says where what lies. It returns the end of the chain.
func forgeSegment(b []byte, base uint64, chain *forged) *forged {
	le, castagnoli := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	sum := func(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }
	for at := 0; at+64 <= len(b); {
		frame := b[at:]
		length := int(le.Uint32(frame[4:]))
		if le.Uint32(frame) != 0x314a4244 || le.Uint64(frame[32:]) != base+uint64(at) || length > len(frame) {
			break // behind the last frame
		}
		frame = frame[:length]
		directory := 64
		if frame[12] == 1 {
			directory += 32 * int(le.Uint32(frame[40:]))
		}
		changed := chain != nil
		if changed {
			le.PutUint32(frame[48:], chain.crc)
		} else if frame[12] == 1 {
			batch := frame[directory:][:le.Uint32(frame[64+4:])]
			batch[len(batch)-3] ^= 1 // of the value
			binary.BigEndian.PutUint32(batch[17:], sum(batch[21:]))
			le.PutUint32(frame[64+20:], sum(batch[21:]))
			changed = true
		}
		if changed {
			head := append([]byte(nil), frame[12:directory]...)
			clear(head[52-12 : 56-12]) // the note counts as zero
			chain = &forged{sum(head)}
			le.PutUint32(frame[8:], chain.crc)
		}
		at += length
	}
	return chain
}
