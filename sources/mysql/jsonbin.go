package mysql

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MySQL stores JSON columns in a binary form of its own and logs that form. What
// follows prints it exactly as the server does when a client selects the column:
// the order of keys, the blanks, the digits.

// The types of values in binary JSON.
const (
	jsonSmallObject = 0
	jsonLargeObject = 1
	jsonSmallArray  = 2
	jsonLargeArray  = 3
	jsonLiteral     = 4
	jsonInt16       = 5
	jsonUint16      = 6
	jsonInt32       = 7
	jsonUint32      = 8
	jsonInt64       = 9
	jsonUint64      = 10
	jsonDouble      = 11
	jsonString      = 12
	jsonOpaque      = 15
)

var errJSON = errors.New("a JSON value is damaged")

// maxJSONDepth is the server's own limit, with room to spare.
const maxJSONDepth = 200

// appendJSONColumn appends a JSON column's value: a JSON string that holds the text
// of the document. An empty value is what INSERT IGNORE makes of NULL; SELECT shows
// it as null.
func appendJSONColumn(dst, b []byte) ([]byte, error) {
	if len(b) == 0 {
		return append(dst, `"null"`...), nil
	}
	text, err := appendJSONText(nil, b[0], b[1:], 0)
	if err != nil {
		return dst, err
	}
	return appendJSONString(dst, text), nil
}

// appendJSONText prints one value of the given type.
func appendJSONText(dst []byte, kind byte, b []byte, depth int) ([]byte, error) {
	if depth > maxJSONDepth {
		return dst, errJSON
	}
	switch kind {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		return appendJSONContainer(dst, kind, b, depth)
	case jsonLiteral:
		if len(b) < 1 || b[0] > 2 {
			return dst, errJSON
		}
		return append(dst, [...]string{"null", "true", "false"}[b[0]]...), nil
	case jsonString:
		length, n := jsonLength(b)
		if n == 0 || length > len(b)-n {
			return dst, errJSON
		}
		return appendMySQLString(dst, b[n:n+length]), nil
	case jsonOpaque:
		return appendJSONOpaque(dst, b)
	}
	return appendJSONNumber(dst, kind, b)
}

func appendJSONNumber(dst []byte, kind byte, b []byte) ([]byte, error) {
	width := map[byte]int{jsonInt16: 2, jsonUint16: 2, jsonInt32: 4, jsonUint32: 4, jsonInt64: 8, jsonUint64: 8, jsonDouble: 8}[kind]
	if width == 0 {
		return dst, fmt.Errorf("a JSON value of the unknown type %d", kind)
	}
	if len(b) < width {
		return dst, errJSON
	}
	switch kind {
	case jsonInt16:
		return strconv.AppendInt(dst, int64(int16(littleEndian16(b))), 10), nil
	case jsonUint16:
		return strconv.AppendUint(dst, uint64(littleEndian16(b)), 10), nil
	case jsonInt32:
		return strconv.AppendInt(dst, int64(int32(littleEndian32(b))), 10), nil
	case jsonUint32:
		return strconv.AppendUint(dst, uint64(littleEndian32(b)), 10), nil
	case jsonInt64:
		return strconv.AppendInt(dst, int64(littleEndian64(b)), 10), nil
	case jsonUint64:
		return strconv.AppendUint(dst, littleEndian64(b), 10), nil
	}
	return appendMySQLDouble(dst, math.Float64frombits(littleEndian64(b))), nil
}

// appendJSONContainer prints an object or array. Its bytes are: count and size, two
// or four bytes each; for objects an entry of offset and 2-byte length for each key;
// an entry of type and offset (or the value itself, where it fits) for each value.
func appendJSONContainer(dst []byte, kind byte, b []byte, depth int) ([]byte, error) {
	width := 2
	if kind == jsonLargeObject || kind == jsonLargeArray {
		width = 4
	}
	if len(b) < 2*width {
		return dst, errJSON
	}
	count, size := jsonUint(b, width), jsonUint(b[width:], width)
	object := kind == jsonSmallObject || kind == jsonLargeObject
	keys := 2 * width
	values := keys
	if object {
		values += count * (width + 2)
	}
	if size > len(b) || values+count*(1+width) > size {
		return dst, errJSON
	}
	b = b[:size]
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i := range count {
		if i > 0 {
			dst = append(dst, ',', ' ')
		}
		if object {
			entry := b[keys+i*(width+2):]
			offset, length := jsonUint(entry, width), int(littleEndian16(entry[width:]))
			if offset > size || length > size-offset {
				return dst, errJSON
			}
			dst = appendMySQLString(dst, b[offset:offset+length])
			dst = append(dst, ':', ' ')
		}
		entry := b[values+i*(1+width):]
		value := entry[1 : 1+width]
		if !jsonInline(entry[0], width) {
			offset := jsonUint(value, width)
			if offset > size {
				return dst, errJSON
			}
			value = b[offset:]
		}
		var err error
		if dst, err = appendJSONText(dst, entry[0], value, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, end), nil
}

// jsonInline reports whether a value of the type stands in its entry.
func jsonInline(kind byte, width int) bool {
	switch kind {
	case jsonLiteral, jsonInt16, jsonUint16:
		return true
	case jsonInt32, jsonUint32:
		return width == 4
	}
	return false
}

func jsonUint(b []byte, width int) int {
	if width == 2 {
		return int(littleEndian16(b))
	}
	return int(littleEndian32(b))
}

// jsonLength reads a length in groups of seven bits; n is 0 where it is damaged.
func jsonLength(b []byte) (length, n int) {
	for n < 5 && n < len(b) {
		c := b[n]
		length |= int(c&0x7F) << (7 * n)
		n++
		if c&0x80 == 0 {
			return length, n
		}
	}
	return 0, 0
}

// appendJSONOpaque prints a value of one of the SQL types that JSON doesn't have.
func appendJSONOpaque(dst, b []byte) ([]byte, error) {
	if len(b) < 1 {
		return dst, errJSON
	}
	kind := b[0]
	length, n := jsonLength(b[1:])
	if n == 0 || length > len(b)-1-n {
		return dst, errJSON
	}
	b = b[1+n : 1+n+length]
	switch kind {
	case typeDecimal:
		if len(b) < 2 {
			return dst, errJSON
		}
		quoted, _, err := appendDecimal(nil, b[2:], int(b[0]), int(b[1]))
		if err != nil {
			return dst, errJSON
		}
		return append(dst, quoted[1:len(quoted)-1]...), nil
	case typeDate, typeTime, typeDatetime, typeTimestamp:
		if len(b) < 8 {
			return dst, errJSON
		}
		return appendJSONTemporal(dst, kind, int64(littleEndian64(b))), nil
	}
	return appendMySQLString(dst, []byte("base64:type"+strconv.Itoa(int(kind))+":"+wrappedBase64(b))), nil
}

// wrappedBase64 breaks lines after 76 characters, as the server does.
func wrappedBase64(b []byte) string {
	s := base64.StdEncoding.EncodeToString(b)
	var w strings.Builder
	for len(s) > 76 {
		w.WriteString(s[:76])
		w.WriteByte('\n')
		s = s[76:]
	}
	w.WriteString(s)
	return w.String()
}

// appendJSONTemporal prints a date or time from its packed form: the parts in the
// upper 40 bits, microseconds in the lower 24.
func appendJSONTemporal(dst []byte, kind byte, v int64) []byte {
	c := valueCodec{fsp: 6, zero: zeroText}
	negative := v < 0
	if negative {
		v = -v
	}
	whole, micros := uint64(v)>>24, uint64(v)&(1<<24-1)
	switch kind {
	case typeTime:
		return c.appendTime(dst, negative, whole>>12&1023, whole>>6&63, whole&63, micros)
	case typeDate:
		return c.appendDate(dst, unpackDatetime(whole, micros))
	}
	return c.appendDatetime(dst, unpackDatetime(whole, micros))
}

// appendMySQLString prints a string with the server's escapes.
func appendMySQLString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s {
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
				continue
			}
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// gcvtMaxPlain is how many places before the point, and zeros behind it, the server
// prints without an exponent.
const gcvtMaxPlain = 15

// appendMySQLDouble prints a double inside JSON: the shortest digits that read back
// as the same number, plain or with an exponent by the server's rule, and ".0"
// behind what would look like an integer.
func appendMySQLDouble(dst []byte, v float64) []byte {
	if v == 0 {
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, "0.0"...)
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], math.Abs(v), 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(string(e), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	x, _ := strconv.Atoi(exponent)
	point := x + 1 // the point stands before the digit of this index
	if v < 0 {
		dst = append(dst, '-')
	}
	if plainDouble(len(digits), point) {
		return appendPlain(dst, digits, point)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(point-1), 10)
}

// plainDouble is the server's choice between 0.00001 and 1e-5.
func plainDouble(digits, point int) bool {
	return point >= -gcvtMaxPlain+1 && (point <= gcvtMaxPlain || digits > point)
}

func appendPlain(dst []byte, digits string, point int) []byte {
	switch {
	case point <= 0:
		dst = append(dst, '0', '.')
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	case point < len(digits):
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	}
	dst = append(dst, digits...)
	for range point - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, ".0"...)
}
