package mysql

import (
	"context"
	"fmt"
)

// rowCodec writes the rows of one table, in one definition, as JSON. It is used by
// one goroutine.
type rowCodec struct {
	table   *table
	name    tableName // in the registry
	full    string    // database.table
	columns []valueCodec
	names   [][]byte // {"id": or ,"name":
	keys    [][]byte // the same for the key's columns
	head    []byte   // of the envelope's source, up to the time

	// spans holds where the value of each column of the key stands in the row that
	// was written last.
	spans []span
}

type span struct{ from, to int }

// newRowCodec returns the codec for a definition, ready to read SELECTs. Rows of the
// log want bindTo as well.
func newRowCodec(ctx context.Context, srv *server, t *table, zero, source string) (*rowCodec, error) {
	c := &rowCodec{table: t, full: t.full(), spans: make([]span, len(t.Key))}
	isKey := make([]bool, len(t.Columns))
	for i, k := range t.Key {
		isKey[k] = true
		c.keys = append(c.keys, fieldName(i == 0, t.Columns[k].Name))
	}
	for i := range t.Columns {
		col := &t.Columns[i]
		v, err := newValueCodec(ctx, srv, col)
		if err != nil {
			return nil, fmt.Errorf("column %s of %s: %w", col.Name, c.full, err)
		}
		v.isKey, v.zero = isKey[i], zero
		c.columns = append(c.columns, v)
		c.names = append(c.names, fieldName(i == 0, col.Name))
	}
	c.head = sourceHead(source, t.DB, t.Name)
	return c, nil
}

// sourceHead is the start of the envelope's source, up to the time.
func sourceHead(source, db, table string) []byte {
	h := []byte(`,"source":{"connector":"mysql","name":`)
	h = appendJSONString(h, []byte(source))
	h = append(h, `,"db":`...)
	h = appendJSONString(h, []byte(db))
	h = append(h, `,"table":`...)
	h = appendJSONString(h, []byte(table))
	return append(h, `,"ts_ms":`...)
}

func fieldName(first bool, name string) []byte {
	b := []byte{','}
	if first {
		b[0] = '{'
	}
	return append(appendJSONString(b, []byte(name)), ':')
}

// newValueCodec returns the codec for a column as SELECT shows it.
func newValueCodec(ctx context.Context, srv *server, col *column) (valueCodec, error) {
	v := valueCodec{name: col.Name, kind: logType(col.Type, srv.flavor), unsigned: col.Unsigned, dec: col.Dec - 1}
	switch col.Type {
	case "binary":
		v.bytes, v.pad = true, col.Len
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		v.bytes = true
	case "date":
	case "time", "datetime", "timestamp":
		v.fsp = col.Len
	case "enum":
		for _, s := range col.Values {
			v.values = append(v.values, appendJSONString(nil, []byte(s)))
		}
	case "set":
		for _, s := range col.Values {
			v.values = append(v.values, []byte(s))
		}
	}
	if hasCharset(col.Type) {
		var err error
		if v.text, err = srv.decoder(ctx, col.Charset); err != nil {
			return v, err
		}
	}
	return v, nil
}

// logType returns how values of a data type are stored in the log.
func logType(dataType, flavor string) byte {
	switch dataType {
	case "tinyint":
		return typeTiny
	case "smallint":
		return typeShort
	case "mediumint":
		return typeInt24
	case "int":
		return typeLong
	case "bigint":
		return typeLongLong
	case "float":
		return typeFloat
	case "double":
		return typeDouble
	case "decimal":
		return typeDecimal
	case "bit":
		return typeBit
	case "year":
		return typeYear
	case "date":
		return typeDate
	case "datetime":
		return typeDatetime2
	case "timestamp":
		return typeTimestamp2
	case "time":
		return typeTime2
	case "char", "binary":
		return typeString
	case "varchar", "varbinary":
		return typeVarchar
	case "enum":
		return typeEnum
	case "set":
		return typeSet
	case "json":
		if flavor == flavorMySQL {
			return typeJSON
		}
		return typeBlob
	}
	return typeBlob
}

// bindTo makes the codec read rows of the log that follow this table map.
func (c *rowCodec) bindTo(m *tableMap) {
	for i := range c.columns {
		c.columns[i].kind, c.columns[i].meta = m.columns[i].kind, m.columns[i].meta
	}
}

// row appends a row image of the log as a JSON object and returns the bytes of b
// behind it. All columns must be in the image.
func (c *rowCodec) row(dst, b []byte) ([]byte, []byte, error) {
	nulls := (len(c.columns) + 7) / 8
	if len(b) < nulls {
		return dst, nil, errShort
	}
	bitmap := b[:nulls]
	b = b[nulls:]
	for i := range c.columns {
		v := &c.columns[i]
		dst = append(dst, c.names[i]...)
		from := len(dst)
		if bitmap[i>>3]&(1<<(i&7)) != 0 {
			dst = append(dst, "null"...)
		} else {
			var n int
			var err error
			if dst, n, err = v.fromLog(dst, b); err != nil {
				return dst, nil, fmt.Errorf("column %s of %s: %w", v.name, c.full, err)
			}
			b = b[n:]
		}
		if v.isKey {
			c.mark(i, from, len(dst))
		}
	}
	return append(dst, '}'), b, nil
}

// textRow appends a row of a SELECT over all columns; nil is NULL.
func (c *rowCodec) textRow(dst []byte, values [][]byte) ([]byte, error) {
	for i := range c.columns {
		v := &c.columns[i]
		dst = append(dst, c.names[i]...)
		from := len(dst)
		if values[i] == nil {
			dst = append(dst, "null"...)
		} else {
			var err error
			if dst, err = v.fromText(dst, values[i]); err != nil {
				return dst, fmt.Errorf("column %s of %s: %w", v.name, c.full, err)
			}
		}
		if v.isKey {
			c.mark(i, from, len(dst))
		}
	}
	return append(dst, '}'), nil
}

func (c *rowCodec) mark(column, from, to int) {
	for k, i := range c.table.Key {
		if i == column {
			c.spans[k] = span{from, to}
		}
	}
}

// key appends the key of the row that was written last into row's buffer.
func (c *rowCodec) key(dst, row []byte) []byte {
	for k, s := range c.spans {
		dst = append(dst, c.keys[k]...)
		dst = append(dst, row[s.from:s.to]...)
	}
	return append(dst, '}')
}
