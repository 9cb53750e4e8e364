package reorder

import (
	"encoding/binary"
	"hash/crc32"
)

// Sealed puts the right checksum behind what a fuzzer made up.
func Sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body[:len(body):len(body)], crc32.Checksum(body, castagnoli))
}
