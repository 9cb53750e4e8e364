package storage

import (
	"encoding/binary"
	"errors"
)

// errShort says that an encoded state ends too early or holds impossible counts.
var errShort = errors.New("encoded state is cut short")

// decoder reads little-endian fields and remembers the first error, so that callers check once at the end.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.buf) {
		d.err = errShort
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) u16() uint16 {
	if b := d.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of items of at least size bytes each; it cannot exceed what is left to read.
func (d *decoder) count(size int) int {
	n := d.u32()
	if uint64(n)*uint64(size) > uint64(len(d.buf)) {
		d.err = errShort
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte { return d.take(d.count(1)) }

func put16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func put32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func put64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
func putBytes(b, v []byte) []byte     { return append(put32(b, uint32(len(v))), v...) }
