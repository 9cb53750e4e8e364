package kafka

import (
	"encoding/binary"
	"errors"
)

// errMalformed is what every request gets that cannot be decoded.
var errMalformed = errors.New("malformed request")

// wire reads the primitive types of the protocol off a frame. The first value
// that does not fit sets bad, and all that follow are zero: callers check once,
// at the end. Slices it returns are parts of the frame.
type wire struct {
	b        []byte
	flexible bool // compact lengths and tagged fields
	tagged   bool // there were tagged fields
	bad      bool
}

func (w *wire) take(n int) []byte {
	if n < 0 || n > len(w.b) || w.bad {
		w.bad, w.b = true, nil
		return nil
	}
	taken := w.b[:n:n]
	w.b = w.b[n:]
	return taken
}

func (w *wire) int8() int8 {
	if b := w.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (w *wire) int16() int16 {
	if b := w.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *wire) int32() int32 {
	if b := w.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (w *wire) int64() int64 {
	if b := w.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (w *wire) uuid() (id [16]byte) {
	copy(id[:], w.take(16))
	return id
}

func (w *wire) uvarint() uint32 {
	n, size := binary.Uvarint(w.b)
	if size <= 0 || size > binary.MaxVarintLen32 || n > 1<<32-1 {
		w.bad, w.b = true, nil
		return 0
	}
	w.b = w.b[size:]
	return uint32(n)
}

// length reads the length of an array, of bytes or of a string; null is -1.
// short says that old versions write it in two bytes.
func (w *wire) length(short bool) int {
	switch {
	case w.flexible:
		return int(w.uvarint()) - 1
	case short:
		return int(w.int16())
	}
	return int(w.int32())
}

// array reads an array's length. Each of its elements takes at least size bytes,
// so that a length beyond what the frame can hold is refused before anything is
// allocated for it.
func (w *wire) array(size int) int {
	n := w.length(false)
	if n > len(w.b)/size {
		w.bad, w.b = true, nil
	}
	if w.bad {
		return 0
	}
	return max(n, 0)
}

// string reads a string that cannot be null.
func (w *wire) string() string { return string(w.take(w.length(true))) }

// orKnown returns known if b is that, else b as a string: the same few names come
// again and again, and need not be made each time.
func orKnown(b []byte, known string) string {
	if string(b) != known {
		return string(b)
	}
	return known
}

// nullableString returns nil for null.
func (w *wire) nullableString() *string {
	n := w.length(true)
	if n < 0 {
		return nil
	}
	s := string(w.take(n))
	return &s
}

// bytes returns a part of the frame, nil for null.
func (w *wire) bytes() []byte {
	n := w.length(false)
	if n < 0 {
		return nil
	}
	return w.take(n)
}

// tags skips the tagged fields of a flexible version: none of those that exist
// concerns a broker that answers for itself.
func (w *wire) tags() {
	if !w.flexible {
		return
	}
	for n := w.uvarint(); n > 0 && !w.bad; n-- {
		w.tagged = true
		w.uvarint()
		w.take(int(w.uvarint()))
	}
}
