package mysql

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The types of columns in the binary log.
const (
	typeTiny       = 1
	typeShort      = 2
	typeLong       = 3
	typeFloat      = 4
	typeDouble     = 5
	typeNull       = 6
	typeTimestamp  = 7
	typeLongLong   = 8
	typeInt24      = 9
	typeDate       = 10
	typeTime       = 11
	typeDatetime   = 12
	typeYear       = 13
	typeVarchar    = 15
	typeBit        = 16
	typeTimestamp2 = 17
	typeDatetime2  = 18
	typeTime2      = 19
	typeVector     = 242
	typeJSON       = 245
	typeDecimal    = 246
	typeEnum       = 247
	typeSet        = 248
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254
	typeGeometry   = 255
)

var errShort = errors.New("the event ends too early")

// tableMap is a table map event: which table the rows that follow belong to, and
// how their values are stored.
type tableMap struct {
	id       uint64
	db, name string
	columns  []mapColumn
	full     bool  // names and the rest are there (binlog_row_metadata=FULL)
	key      []int // with full: the primary key's columns
	signs    bool  // signedness is known
	charsets bool  // collations are known
}

type mapColumn struct {
	kind     byte   // the real type: ENUM and SET in place of STRING
	meta     uint16 // its meaning depends on kind; of STRING the length in bytes
	nullable bool

	unsigned  bool
	collation uint64 // of text, with charsets
	name      string // with full
	values    []string
	hasValues bool
}

// parseTableMap decodes the body of a table map event.
func parseTableMap(b []byte) (*tableMap, error) {
	r := byteReader{b: b}
	m := &tableMap{id: r.uint(6)}
	r.uint(2)
	m.db = string(r.bytes(int(r.uint(1))))
	r.uint(1)
	m.name = string(r.bytes(int(r.uint(1))))
	r.uint(1)
	n := r.lenenc()
	if r.err != nil || n > uint64(len(b)) {
		return nil, fmt.Errorf("decoding a table map: %w", errShort)
	}
	types := r.bytes(int(n))
	meta := byteReader{b: r.bytes(int(r.lenenc()))}
	nulls := r.bytes(int(n+7) / 8)
	if r.err != nil {
		return nil, fmt.Errorf("decoding a table map: %w", r.err)
	}
	m.columns = make([]mapColumn, n)
	for i := range m.columns {
		m.columns[i] = parseMapColumn(types[i], &meta)
		m.columns[i].nullable = nulls[i/8]&(1<<(i%8)) != 0
	}
	if meta.err != nil {
		return nil, fmt.Errorf("decoding the types of %s.%s: %w", m.db, m.name, meta.err)
	}
	if err := m.parseOptional(&r); err != nil {
		return nil, fmt.Errorf("decoding the metadata of %s.%s: %w", m.db, m.name, err)
	}
	return m, nil
}

func parseMapColumn(kind byte, meta *byteReader) mapColumn {
	c := mapColumn{kind: kind}
	switch kind {
	case typeString:
		real, length := byte(meta.uint(1)), uint16(meta.uint(1))
		switch {
		case real == typeEnum || real == typeSet:
			c.kind, c.meta = real, length
		case real&0x30 != 0x30: // two bits of a length above 255 hide in the type
			c.meta = length | uint16(real&0x30^0x30)<<4
		default:
			c.meta = length
		}
	case typeDecimal:
		c.meta = uint16(meta.uint(1))<<8 | uint16(meta.uint(1))
	case typeVarchar, typeVarString, typeBit:
		c.meta = uint16(meta.uint(2))
	case typeBlob, typeDouble, typeFloat, typeGeometry, typeVector, typeJSON, typeTime2, typeDatetime2, typeTimestamp2, 140:
		c.meta = uint16(meta.uint(1))
	case 141:
		c.meta = uint16(meta.uint(2))
	}
	return c
}

// The kinds of optional metadata.
const (
	metaSignedness          = 1
	metaDefaultCharset      = 2
	metaColumnCharset       = 3
	metaColumnName          = 4
	metaSetValues           = 5
	metaEnumValues          = 6
	metaSimpleKey           = 8
	metaPrefixKey           = 9
	metaEnumSetDefaultChars = 10
	metaEnumSetColumnChars  = 11
)

func (m *tableMap) parseOptional(r *byteReader) error {
	for r.err == nil && len(r.b) > 0 {
		kind := r.uint(1)
		v := byteReader{b: r.bytes(int(r.lenenc()))}
		switch kind {
		case metaSignedness:
			m.signs = true
			m.parseSigns(v.b)
		case metaDefaultCharset, metaEnumSetDefaultChars:
			m.charsets = true
			m.parseDefaultCharset(&v, kind == metaEnumSetDefaultChars)
		case metaColumnCharset, metaEnumSetColumnChars:
			m.charsets = true
			for _, i := range m.textColumns(kind == metaEnumSetColumnChars) {
				m.columns[i].collation = v.lenenc()
			}
		case metaColumnName:
			m.full = true
			for i := range m.columns {
				m.columns[i].name = string(v.bytes(int(v.uint(1))))
			}
		case metaSetValues, metaEnumValues:
			m.parseValues(&v, kind == metaSetValues)
		case metaSimpleKey, metaPrefixKey:
			for v.err == nil && len(v.b) > 0 {
				m.key = append(m.key, int(v.lenenc()))
				if kind == metaPrefixKey {
					v.lenenc()
				}
			}
		}
		if v.err != nil {
			return v.err
		}
	}
	return r.err
}

// parseSigns reads one bit for each numeric column, the highest first.
func (m *tableMap) parseSigns(bits []byte) {
	n := 0
	for i := range m.columns {
		switch m.columns[i].kind {
		case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeFloat, typeDouble, typeDecimal, typeYear, 0:
			if n/8 < len(bits) {
				m.columns[i].unsigned = bits[n/8]&(0x80>>(n%8)) != 0
			}
			n++
		}
	}
}

// textColumns lists the columns that the metadata about character sets counts:
// text, or ENUM and SET.
func (m *tableMap) textColumns(enums bool) []int {
	var list []int
	for i := range m.columns {
		switch m.columns[i].kind {
		case typeEnum, typeSet:
			if enums {
				list = append(list, i)
			}
		case typeString, typeVarString, typeVarchar, typeBlob, 140, 141:
			if !enums {
				list = append(list, i)
			}
		}
	}
	return list
}

// parseDefaultCharset reads a default collation and the columns that differ.
func (m *tableMap) parseDefaultCharset(v *byteReader, enums bool) {
	columns := m.textColumns(enums)
	fallback := v.lenenc()
	for _, i := range columns {
		m.columns[i].collation = fallback
	}
	for v.err == nil && len(v.b) > 0 {
		i, collation := v.lenenc(), v.lenenc()
		if i < uint64(len(columns)) {
			m.columns[columns[i]].collation = collation
		}
	}
}

func (m *tableMap) parseValues(v *byteReader, sets bool) {
	for i := range m.columns {
		c := &m.columns[i]
		if sets && c.kind != typeSet || !sets && c.kind != typeEnum || len(v.b) == 0 {
			continue
		}
		n := v.lenenc()
		c.hasValues = true
		for ; n > 0 && v.err == nil; n-- {
			c.values = append(c.values, string(v.bytes(int(v.lenenc()))))
		}
	}
}

// byteReader takes bytes from the front of b. After the first shortage err is set
// and everything reads as zero.
type byteReader struct {
	b   []byte
	err error
}

func (r *byteReader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.err, r.b = errShort, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// uint reads n bytes, the lowest first.
func (r *byteReader) uint(n int) uint64 {
	var v uint64
	for i, c := range r.bytes(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// lenenc reads an integer of the protocol's variable length.
func (r *byteReader) lenenc() uint64 {
	switch c := r.uint(1); c {
	case 0xFC:
		return r.uint(2)
	case 0xFD:
		return r.uint(3)
	case 0xFE:
		return r.uint(8)
	default:
		return c
	}
}

// littleEndian16 and friends keep the decoders of values short.
func littleEndian16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func littleEndian32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func littleEndian64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// bigEndian reads up to eight bytes, the highest first.
func bigEndian(b []byte) uint64 {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}
