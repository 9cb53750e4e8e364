package mysql

// MariaDB has a form of its own for times with digits of a second, in tables made with
// mysql56_temporal_format=OFF or by MariaDB 5.3 to 10.0: one number, of as many bytes as
// the digits ask for, the highest first. Its type in the log is that of the old form
// without digits, so only the definition tells the two apart.

// hires reports whether values are in that form.
func (c *valueCodec) hires() bool {
	return c.fsp > 0 && (c.kind == typeTime || c.kind == typeDatetime || c.kind == typeTimestamp)
}

func (c *valueCodec) hiresLen() int {
	switch c.kind {
	case typeTime:
		return [...]int{3, 4, 4, 5, 5, 5, 6}[min(c.fsp, 6)]
	case typeDatetime:
		return [...]int{5, 6, 6, 7, 7, 7, 8}[min(c.fsp, 6)]
	}
	return [...]int{4, 5, 5, 6, 6, 7, 7}[min(c.fsp, 6)]
}

// maxTimeSeconds is one second more than a TIME can have; MariaDB adds it so that the
// negative sort as bytes.
const maxTimeSeconds = 838*3600 + 59*60 + 59 + 1

func (c *valueCodec) appendHires(dst, b []byte) []byte {
	unit := uint64(1) // microseconds in the last digit
	for range 6 - c.fsp {
		unit *= 10
	}
	if c.kind == typeTimestamp {
		return c.appendUnix(dst, bigEndian(b[:4]), bigEndian(b[4:])*unit)
	}
	v := int64(bigEndian(b))
	if c.kind == typeDatetime {
		seconds, micros := uint64(v)*unit/1e6, uint64(v)*unit%1e6
		minutes, hours := seconds/60, seconds/3600
		days := hours / 24
		return c.appendDatetime(dst, clock{
			year: days / 32 / 13, month: days / 32 % 13, day: days % 32,
			hour: hours % 24, minute: minutes % 60, second: seconds % 60, micros: micros,
		})
	}
	v = v*int64(unit) - maxTimeSeconds*1e6
	negative := v < 0
	if negative {
		v = -v
	}
	seconds := uint64(v) / 1e6
	return c.appendTime(dst, negative, seconds/3600, seconds/60%60, seconds%60, uint64(v)%1e6)
}
