package mysql

import "strconv"

// decimalBytes is how many bytes hold the given number of digits, up to nine.
var decimalBytes = [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// appendDecimal appends a DECIMAL(precision, scale) in its packed form as a JSON
// string, with all digits of the scale, and returns how many bytes it takes.
//
// The digits stand in groups of nine, four bytes each, the highest byte first; the
// group at either end may be shorter. The highest bit is turned over, and all bits
// of negative numbers are.
func appendDecimal(dst, b []byte, precision, scale int) ([]byte, int, error) {
	if scale > precision {
		return dst, 0, errShort
	}
	whole := precision - scale
	size := whole/9*4 + decimalBytes[whole%9] + scale/9*4 + decimalBytes[scale%9]
	if size > len(b) || size == 0 {
		return dst, 0, errShort
	}
	var flip byte
	if b[0]&0x80 == 0 {
		flip = 0xFF
	}
	pos := 0
	group := func(digits int) uint64 {
		var v uint64
		for range decimalBytes[digits] {
			c := b[pos] ^ flip
			if pos == 0 {
				c ^= 0x80
			}
			v = v<<8 | uint64(c)
			pos++
		}
		return v
	}
	dst = append(dst, '"')
	if flip != 0 {
		dst = append(dst, '-')
	}
	start := len(dst)
	appendGroup := func(v uint64, digits int) {
		if len(dst) == start && v == 0 {
			return // no leading zeros
		}
		if len(dst) == start {
			dst = strconv.AppendUint(dst, v, 10)
			return
		}
		dst = appendPadded(dst, v, digits)
	}
	if whole%9 > 0 {
		appendGroup(group(whole%9), whole%9)
	}
	for range whole / 9 {
		appendGroup(group(9), 9)
	}
	if len(dst) == start {
		dst = append(dst, '0')
	}
	if scale > 0 {
		dst = append(dst, '.')
		for range scale / 9 {
			dst = appendPadded(dst, group(9), 9)
		}
		if scale%9 > 0 {
			dst = appendPadded(dst, group(scale%9), scale%9)
		}
	}
	return append(dst, '"'), size, nil
}

// appendPadded appends v with zeros in front up to the given number of digits.
func appendPadded(dst []byte, v uint64, digits int) []byte {
	var buf [20]byte
	i := len(buf)
	for v > 0 || digits > 0 {
		i--
		buf[i] = byte('0' + v%10)
		v /= 10
		digits--
	}
	return append(dst, buf[i:]...)
}
