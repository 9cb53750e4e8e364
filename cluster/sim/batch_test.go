package sim_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/daybook-data/daybook/storage"
)

const batchHeader = 61

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode makes a batch of values. Producer -1 is none.
func encode(producer int64, sequence int32, values ...string) []byte {
	b := make([]byte, batchHeader)
	for i, v := range values {
		r := []byte{0, 0} // attributes, timestamp delta
		r = binary.AppendVarint(r, int64(i))
		r = binary.AppendVarint(r, -1) // no key
		r = binary.AppendVarint(r, int64(len(v)))
		r = append(append(r, v...), 0)
		b = append(binary.AppendVarint(b, int64(len(r))), r...)
	}
	be := binary.BigEndian
	be.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	be.PutUint32(b[23:], uint32(len(values)-1))
	be.PutUint64(b[43:], uint64(producer))
	be.PutUint16(b[51:], 0)
	be.PutUint32(b[53:], uint32(sequence))
	if producer < 0 {
		be.PutUint16(b[51:], 0xffff)
		be.PutUint32(b[53:], 0xffffffff)
	}
	be.PutUint32(b[57:], uint32(len(values)))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// decode calls f with the offset and value of each record of batches.
func decode(b []byte, f func(offset int64, value string)) error {
	for len(b) > 0 {
		h, err := storage.ParseHeader(b)
		if err != nil {
			return err
		}
		size := h.Size()
		if crc32.Checksum(b[21:size], castagnoli) != h.CRC {
			return fmt.Errorf("batch at offset %d fails its checksum", h.BaseOffset)
		}
		for i, r := int64(0), b[batchHeader:size]; i <= int64(h.LastDelta); i++ {
			length, n := binary.Varint(r)
			record := r[n : n+int(length)]
			r = r[n+int(length):]
			_, n = binary.Varint(record[2:])
			_, k := binary.Varint(record[2+n:])
			size, m := binary.Varint(record[2+n+k:])
			f(h.BaseOffset+i, string(record[2+n+k+m:][:size]))
		}
		b = b[size:]
	}
	return nil
}

// epochOf is the leader epoch that a stored batch got.
func epochOf(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b[12:])) }
