// Package storagetest makes records for tests of what is built on journals.
package storagetest

import (
	"encoding/binary"
	"hash/crc32"
)

// Batch makes a batch of one record with an uncompressed value.
func Batch(value string) []byte {
	r := []byte{0, 0, 0, 1}
	r = binary.AppendVarint(r, int64(len(value)))
	r = append(append(r, value...), 0)
	b := binary.AppendVarint(make([]byte, 61), int64(len(r)))
	b = append(b, r...)
	be := binary.BigEndian
	be.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	for i := 43; i < 57; i++ {
		b[i] = 0xff // no producer id
	}
	be.PutUint32(b[57:], 1)
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
