package mysql

import (
	"fmt"
	"strconv"
)

// fromText appends the JSON of a value as a SELECT over a connection in UTC
// returned it, text still in the column's own character set.
func (c *valueCodec) fromText(dst, v []byte) ([]byte, error) {
	switch c.kind {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeYear:
		return append(dst, v...), nil
	case typeFloat, typeDouble:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return dst, fmt.Errorf("%q is not a number", v)
		}
		if c.kind == typeFloat {
			// Whatever digits came, they name the number that is stored.
			return c.appendFloat(dst, float64(float32(f)), 32), nil
		}
		return appendDouble(dst, f), nil
	case typeDecimal:
		return appendQuoted(dst, v), nil
	case typeBit:
		return strconv.AppendUint(dst, bigEndian(v), 10), nil
	case typeJSON:
		return appendJSONString(dst, v), nil
	case typeDate:
		return c.dateText(dst, v, `"1970-01-01"`), nil
	case typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2:
		epoch := string(c.appendFraction([]byte(`"1970-01-01 00:00:00`), 0)) + `"`
		return c.dateText(dst, v, epoch), nil
	case typeTime, typeTime2:
		return appendQuoted(dst, v), nil
	}
	return c.appendText(dst, v), nil
}

func appendQuoted(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, v...)
	return append(dst, '"')
}

// dateText copies a date unless its month or day is zero and the policy says else.
func (c *valueCodec) dateText(dst, v []byte, epoch string) []byte {
	if len(v) >= 10 && (string(v[5:7]) == "00" || string(v[8:10]) == "00") {
		if replaced, ok := c.replaceZero(dst, epoch); ok {
			return replaced
		}
	}
	return appendQuoted(dst, v)
}
