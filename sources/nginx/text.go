package nginx

import (
	"bytes"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// unescape returns the bytes that nginx had before it escaped them. What is no
// escape stands for itself. The result may share v's memory.
func (e escape) unescape(v []byte) []byte {
	if e == escapeNone || bytes.IndexByte(v, '\\') < 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		b, used := v[i], 1
		if b == '\\' {
			if e == escapeJSON {
				b, used = unescapeJSON(v[i:])
			} else {
				b, used = unescapeHex(v[i:])
			}
		}
		out = append(out, b)
		i += used - 1
	}
	return out
}

// unescapeHex reads \xHH.
func unescapeHex(v []byte) (b byte, used int) {
	if len(v) >= 4 && v[1] == 'x' {
		high, low := fromHex(v[2]), fromHex(v[3])
		if high >= 0 && low >= 0 {
			return byte(high<<4 | low), 4
		}
	}
	return '\\', 1
}

// unescapeJSON reads the escapes that nginx's escape=json writes: for quotes,
// backslashes and control characters only.
func unescapeJSON(v []byte) (b byte, used int) {
	if len(v) < 2 {
		return '\\', 1
	}
	switch v[1] {
	case '"', '\\', '/':
		return v[1], 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		if len(v) >= 6 && v[2] == '0' && v[3] == '0' {
			high, low := fromHex(v[4]), fromHex(v[5])
			if high >= 0 && low >= 0 && high<<4|low < 0x80 {
				return byte(high<<4 | low), 6
			}
		}
	}
	return '\\', 1
}

func fromHex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// escapeBytes writes v in nginx's default escape, from which every byte can be had
// back. It is how a value that is not UTF-8 stands in a record.
func escapeBytes(v []byte) []byte {
	out := make([]byte, 0, len(v)+len(v)/2)
	for _, b := range v {
		if b < 0x20 || b > 0x7e || b == '"' || b == '\\' {
			out = append(out, '\\', 'x', hexDigits[b>>4], hexDigits[b&15])
			continue
		}
		out = append(out, b)
	}
	return out
}

// appendText appends v as a JSON text; escaped says that v is not UTF-8 and stands
// there as escapeBytes writes it.
func appendText(dst, v []byte) (_ []byte, escaped bool) {
	if !utf8.Valid(v) {
		v, escaped = escapeBytes(v), true
	}
	dst = append(dst, '"')
	start := 0
	for i, b := range v {
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, v[start:i]...)
		start = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	dst = append(dst, v[start:]...)
	return append(dst, '"'), escaped
}
