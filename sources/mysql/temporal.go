package mysql

// clock is a date and time in its parts, as the server shows it.
type clock struct {
	year, month, day     uint64
	hour, minute, second uint64
	micros               uint64
}

// temporal appends a date or time from its form in the log.
func (c *valueCodec) temporal(dst, b []byte, n int) ([]byte, int, error) {
	if c.hires() {
		return c.appendHires(dst, b), n, nil
	}
	switch c.kind {
	case typeDate:
		v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16
		dst = c.appendDate(dst, clock{year: v >> 9, month: v >> 5 & 15, day: v & 31})
	case typeTime, typeTime2:
		dst = c.time(dst, b)
	case typeTimestamp:
		dst = c.appendUnix(dst, uint64(littleEndian32(b)), 0)
	case typeTimestamp2:
		dst = c.appendUnix(dst, bigEndian(b[:4]), c.fraction(b[4:]))
	case typeDatetime:
		v := littleEndian64(b)
		d, t := v/1e6, v%1e6
		dst = c.appendDatetime(dst, clock{year: d / 1e4, month: d / 100 % 100, day: d % 100, hour: t / 1e4, minute: t / 100 % 100, second: t % 100})
	case typeDatetime2:
		dst = c.appendDatetime(dst, unpackDatetime(bigEndian(b[:5])-0x8000000000, c.fraction(b[5:])))
	}
	return dst, n, nil
}

// unpackDatetime takes apart the packed form: 17 bits of year*13+month, 5 of day,
// 5 of hour, 6 of minute, 6 of second.
func unpackDatetime(v, micros uint64) clock {
	ym := v >> 22
	return clock{
		year: ym / 13, month: ym % 13, day: v >> 17 & 31,
		hour: v >> 12 & 31, minute: v >> 6 & 63, second: v & 63, micros: micros,
	}
}

// fraction reads the stored part of a second, in microseconds.
func (c *valueCodec) fraction(b []byte) uint64 {
	v := bigEndian(b)
	switch len(b) {
	case 1:
		return v * 10000
	case 2:
		return v * 100
	}
	return v
}

// time appends a TIME. Negative ones are stored so that they sort as bytes.
func (c *valueCodec) time(dst, b []byte) []byte {
	if c.kind == typeTime { // before MySQL 5.6: decimal digits
		v := int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8)
		negative := v < 0
		if negative {
			v = -v
		}
		u := uint64(v)
		return c.appendTime(dst, negative, u/1e4, u/100%100, u%100, 0)
	}
	// The whole is one number, biased, with the fraction in its lowest bytes.
	bias := int64(1) << (8*len(b) - 1)
	v := int64(bigEndian(b)) - bias
	negative := v < 0
	if negative {
		v = -v
	}
	fractionBits := 8 * (len(b) - 3)
	whole, part := uint64(v)>>fractionBits, uint64(v)&(1<<fractionBits-1)
	switch len(b) - 3 {
	case 1:
		part *= 10000
	case 2:
		part *= 100
	}
	return c.appendTime(dst, negative, whole>>12&1023, whole>>6&63, whole&63, part)
}

func (c *valueCodec) appendTime(dst []byte, negative bool, hour, minute, second, micros uint64) []byte {
	dst = append(dst, '"')
	if negative {
		dst = append(dst, '-')
	}
	dst = appendPadded(dst, hour, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, minute, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, second, 2)
	dst = c.appendFraction(dst, micros)
	return append(dst, '"')
}

// appendFraction appends the digits of a second that the column has.
func (c *valueCodec) appendFraction(dst []byte, micros uint64) []byte {
	if c.fsp == 0 {
		return dst
	}
	dst = append(dst, '.')
	for range 6 - c.fsp {
		micros /= 10
	}
	return appendPadded(dst, micros, c.fsp)
}

// appendUnix appends a TIMESTAMP in UTC; zero is the zero date.
func (c *valueCodec) appendUnix(dst []byte, seconds, micros uint64) []byte {
	if seconds == 0 {
		return c.appendDatetime(dst, clock{micros: micros})
	}
	// Days to year, month and day, by eras of 400 years that begin in March.
	days, rest := seconds/86400+719468, seconds%86400
	era := days / 146097
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	k := clock{year: yoe + era*400, day: doy - (153*mp+2)/5 + 1, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60, micros: micros}
	if k.month = mp + 3; mp >= 10 {
		k.month = mp - 9
		k.year++
	}
	return c.appendDatetime(dst, k)
}

func (c *valueCodec) appendDate(dst []byte, k clock) []byte {
	if k.month == 0 || k.day == 0 {
		if replaced, ok := c.replaceZero(dst, `"1970-01-01"`); ok {
			return replaced
		}
	}
	dst = append(dst, '"')
	dst = appendYMD(dst, k)
	return append(dst, '"')
}

func (c *valueCodec) appendDatetime(dst []byte, k clock) []byte {
	if k.month == 0 || k.day == 0 {
		epoch := string(c.appendFraction([]byte(`"1970-01-01 00:00:00`), 0)) + `"`
		if replaced, ok := c.replaceZero(dst, epoch); ok {
			return replaced
		}
	}
	dst = append(dst, '"')
	dst = appendYMD(dst, k)
	dst = append(dst, ' ')
	dst = appendPadded(dst, k.hour, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, k.minute, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, k.second, 2)
	dst = c.appendFraction(dst, k.micros)
	return append(dst, '"')
}

func appendYMD(dst []byte, k clock) []byte {
	dst = appendPadded(dst, k.year, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, k.month, 2)
	dst = append(dst, '-')
	return appendPadded(dst, k.day, 2)
}

// replaceZero applies the policy for zero dates. Keys keep their text, for two rows
// must not get one key.
func (c *valueCodec) replaceZero(dst []byte, epoch string) ([]byte, bool) {
	if c.isKey {
		return dst, false
	}
	switch c.zero {
	case zeroNull:
		return append(dst, "null"...), true
	case zeroEpoch:
		return append(dst, epoch...), true
	}
	return dst, false
}
