package mysql

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
)

// valueCodec writes the values of one column as JSON, from the form they have in
// the binary log (fromLog) and from the text of a SELECT (fromText, in select.go).
// Both end in the same append functions, which is what makes the phases agree.
//
// Guarantee 8.
type valueCodec struct {
	kind     byte // type in the binary log
	meta     uint16
	unsigned bool
	bytes    bool // BINARY, VARBINARY, BLOB: base64
	pad      int  // BINARY(n) is n bytes long, whatever was stored
	isKey    bool
	zero     string // what becomes of zero dates
	dec      int    // declared digits of FLOAT and DOUBLE, -1 for none
	fsp      int    // digits of a second
	text     decoder
	values   [][]byte // JSON of the values of ENUM, or text of the members of SET
	name     string
}

// fromLog appends the JSON of the value at the start of b and returns how many
// bytes of b it takes.
func (c *valueCodec) fromLog(dst, b []byte) ([]byte, int, error) {
	switch c.kind {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong:
		return c.integer(dst, b)
	case typeVarchar, typeVarString, typeString:
		return c.short(dst, b)
	case typeBlob:
		v, n, err := prefixed(b, int(c.meta))
		if err != nil {
			return dst, 0, err
		}
		return c.appendText(dst, v), n, nil
	case typeJSON:
		v, n, err := prefixed(b, int(c.meta))
		if err != nil {
			return dst, 0, err
		}
		dst, err = appendJSONColumn(dst, v)
		return dst, n, err
	case typeDecimal:
		return appendDecimal(dst, b, int(c.meta>>8), int(c.meta&0xFF))
	}
	return c.fixed(dst, b)
}

// fixed does the types whose length follows from the type alone.
func (c *valueCodec) fixed(dst, b []byte) ([]byte, int, error) {
	n := c.fixedLen()
	if n < 0 {
		return dst, 0, fmt.Errorf("type %d is not supported", c.kind)
	}
	if n > len(b) {
		return dst, 0, errShort
	}
	b = b[:n]
	switch c.kind {
	case typeFloat:
		dst = c.appendFloat(dst, float64(math.Float32frombits(littleEndian32(b))), 32)
	case typeDouble:
		dst = c.appendFloat(dst, math.Float64frombits(littleEndian64(b)), 64)
	case typeYear:
		year := uint64(b[0])
		if year != 0 {
			year += 1900
		}
		dst = strconv.AppendUint(dst, year, 10)
	case typeBit:
		dst = strconv.AppendUint(dst, bigEndian(b), 10)
	case typeEnum:
		return c.enum(dst, b, n)
	case typeSet:
		return c.set(dst, b, n)
	default:
		return c.temporal(dst, b, n)
	}
	return dst, n, nil
}

func (c *valueCodec) fixedLen() int {
	if c.hires() {
		return c.hiresLen()
	}
	fraction := int(c.meta+1) / 2
	switch c.kind {
	case typeFloat:
		return 4
	case typeDouble:
		return 8
	case typeYear:
		return 1
	case typeBit:
		return (int(c.meta>>8)*8 + int(c.meta&0xFF) + 7) / 8
	case typeEnum, typeSet:
		return int(c.meta & 0xFF)
	case typeDate, typeTime:
		return 3
	case typeTimestamp:
		return 4
	case typeDatetime:
		return 8
	case typeTimestamp2:
		return 4 + fraction
	case typeDatetime2:
		return 5 + fraction
	case typeTime2:
		return 3 + fraction
	}
	return -1
}

func (c *valueCodec) integer(dst, b []byte) ([]byte, int, error) {
	var n int
	switch c.kind {
	case typeTiny:
		n = 1
	case typeShort:
		n = 2
	case typeInt24:
		n = 3
	case typeLong:
		n = 4
	default:
		n = 8
	}
	if len(b) < n {
		return dst, 0, errShort
	}
	var v uint64
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	if c.unsigned {
		return strconv.AppendUint(dst, v, 10), n, nil
	}
	shift := 64 - 8*n
	return strconv.AppendInt(dst, int64(v<<shift)>>shift, 10), n, nil
}

// short does strings with a length of one or two bytes in front.
func (c *valueCodec) short(dst, b []byte) ([]byte, int, error) {
	width := 1
	if c.meta > 255 {
		width = 2
	}
	v, n, err := prefixed(b, width)
	if err != nil {
		return dst, 0, err
	}
	return c.appendText(dst, v), n, nil
}

// prefixed returns the bytes behind a length of the given width, and the width of
// both.
func prefixed(b []byte, width int) ([]byte, int, error) {
	if len(b) < width {
		return nil, 0, errShort
	}
	length := 0
	for i := width - 1; i >= 0; i-- {
		length = length<<8 | int(b[i])
	}
	if length > len(b)-width {
		return nil, 0, errShort
	}
	return b[width : width+length], width + length, nil
}

// appendText appends a string of the column: text, or base64 of bytes.
func (c *valueCodec) appendText(dst, v []byte) []byte {
	if !c.bytes {
		return c.text.appendJSON(dst, v)
	}
	if c.pad > len(v) {
		padded := make([]byte, c.pad)
		copy(padded, v)
		v = padded
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

func (c *valueCodec) enum(dst, b []byte, n int) ([]byte, int, error) {
	i := uint64(0)
	for k := n - 1; k >= 0; k-- {
		i = i<<8 | uint64(b[k])
	}
	if i == 0 { // the value that marks an invalid one; SELECT shows empty text
		return append(dst, '"', '"'), n, nil
	}
	if i > uint64(len(c.values)) {
		return dst, 0, fmt.Errorf("value %d of an ENUM with %d values", i, len(c.values))
	}
	return append(dst, c.values[i-1]...), n, nil
}

func (c *valueCodec) set(dst, b []byte, n int) ([]byte, int, error) {
	bits := uint64(0)
	for k := n - 1; k >= 0; k-- {
		bits = bits<<8 | uint64(b[k])
	}
	if len(c.values) < 64 && bits>>len(c.values) != 0 {
		return dst, 0, fmt.Errorf("members %#x of a SET with %d members", bits, len(c.values))
	}
	var joined []byte
	for i := range c.values {
		if bits&(1<<i) == 0 {
			continue
		}
		if joined != nil {
			joined = append(joined, ',')
		}
		joined = append(joined, c.values[i]...)
	}
	return appendJSONString(dst, joined), n, nil
}

// appendFloat appends the number that SELECT shows: FLOAT has six digits there, and
// a declared number of decimals rounds. It is always a number that JSON has: the
// server stores neither infinity nor NaN.
func (c *valueCodec) appendFloat(dst []byte, v float64, bits int) []byte {
	var shown [350]byte
	switch {
	case c.dec >= 0:
		v, _ = strconv.ParseFloat(string(strconv.AppendFloat(shown[:0], v, 'f', c.dec, 64)), 64)
	case bits == 32:
		v, _ = strconv.ParseFloat(string(strconv.AppendFloat(shown[:0], v, 'g', 6, 64)), 64)
	}
	return appendDouble(dst, v)
}

// appendDouble appends the shortest text that reads back as the same number.
func appendDouble(dst []byte, v float64) []byte {
	if v == 0 {
		v = 0 // no minus zero
	}
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}
