package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// rowsEvent is the body of a rows event, taken apart as far as the first row.
type rowsEvent struct {
	op     byte // c, u or d
	id     uint64
	last   bool // of its statement
	images []byte
	full   bool // every column is in every image
	count  int  // of columns

	present, after []byte // bitmaps of the columns in the images; after is that of an update's second
}

// parseRows reads what stands before the rows.
func parseRows(kind replication.EventType, b []byte) (rowsEvent, error) {
	e := rowsEvent{}
	extra, compressed := false, false
	switch kind {
	case replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2, replication.PARTIAL_UPDATE_ROWS_EVENT:
		extra = true
	case replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		compressed = true
	}
	switch kind {
	case replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2, replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.WRITE_ROWS_EVENTv0:
		e.op = 'c'
	case replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2, replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1, replication.DELETE_ROWS_EVENTv0:
		e.op = 'd'
	default:
		e.op = 'u'
	}
	r := byteReader{b: b}
	e.id = r.uint(6)
	e.last = r.uint(2)&replication.RowsEventStmtEndFlag != 0
	if extra {
		if n := int(r.uint(2)); n > 2 {
			r.bytes(n - 2)
		}
	}
	columns := r.lenenc()
	if columns > uint64(len(b))*8 {
		return e, errShort
	}
	e.count = int(columns)
	e.present = r.bytes((e.count + 7) / 8)
	e.full = allSet(e.present, e.count)
	if e.op == 'u' {
		e.after = r.bytes((e.count + 7) / 8)
		e.full = allSet(e.after, e.count) && e.full
	}
	if r.err != nil {
		return e, r.err
	}
	e.images = r.b
	if compressed {
		var err error
		if e.images, err = mysql.DecompressMariadbData(r.b); err != nil {
			return e, err
		}
	}
	return e, nil
}

func allSet(bitmap []byte, n int) bool {
	for i := range n {
		if i>>3 >= len(bitmap) || bitmap[i>>3]&(1<<(i&7)) == 0 {
			return false
		}
	}
	return true
}

// rows turns a rows event into records.
func (r *reader) rows(h *replication.EventHeader, b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("decoding rows at %s: %w", r.at, errShort)
	}
	known := r.bindings[mysql.FixedLengthInt(b[:6])]
	if known == nil {
		if mysql.FixedLengthInt(b[:6]) == 0xFFFFFF { // a dummy that only ends a statement
			return nil
		}
		return &pipeline.StopError{Code: "binlog-damaged", Where: r.at.String(), Err: errors.New("rows of a table that no table map names"),
			Fix: "check the binary log with mysqlbinlog"}
	}
	return r.contain(r.capture(h, b, known))
}

// capture hands on the rows of an event, if their table is captured.
func (r *reader) capture(h *replication.EventHeader, b []byte, known *binding) error {
	if err := r.bind(h, known); err != nil {
		return err
	}
	if known.codec == nil {
		if r.tx.xa != nil {
			r.tx.xa.pass(r, known.m)
		}
		return nil
	}
	e, err := parseRows(h.EventType, b)
	if err != nil {
		return fmt.Errorf("decoding rows of %s at %s: %w", known.codec.full, r.at, err)
	}
	if err := r.complete(h, e, known.codec); err != nil {
		return err
	}
	if r.tx.xa != nil {
		return r.tx.xa.hold(r, h, e, known.codec)
	}
	return r.emitRows(h, e, known.codec)
}

// bind finds the codec for a table map, once.
func (r *reader) bind(h *replication.EventHeader, b *binding) error {
	if b.bound {
		return nil
	}
	name := r.reg.id(b.m.db, b.m.name)
	_, parked := r.parked[name]
	if r.shadow == nil && !parked && r.reg.captured(name) {
		codec, err := r.reg.bind(r.ctx, b.m, r)
		if err != nil {
			return err
		}
		if was, had := r.reg.former[name]; had {
			delete(r.reg.former, name)
			r.reg.changed()
			if !sameKeyColumns(was, codec.table.keyColumns()) {
				r.replaced(h, name, "a change of the key")
			}
		}
		b.codec, b.generation = codec, r.reg.generation
	}
	b.bound = true
	return nil
}

// complete refuses images that lack columns. Absent is not NULL, and what a sink
// would have to keep is not ours to guess. Promise 5.
func (r *reader) complete(h *replication.EventHeader, e rowsEvent, c *rowCodec) error {
	refuse := func(why, variable, value string) error {
		return &tableError{c.name, &pipeline.StopError{Code: "incomplete-rows", Where: fmt.Sprintf("%s at %s", c.full, r.at), Err: errors.New(why),
			Fix: fmt.Sprintf("SET GLOBAL %s = %s (and find the session that sets it), then restart the pipeline: the table is read anew", variable, value)}}
	}
	if h.EventType == replication.PARTIAL_UPDATE_ROWS_EVENT {
		return refuse("the log has parts of JSON documents in place of whole ones", "binlog_row_value_options", "''")
	}
	if name := c.onlyGenerated(e); name != "" {
		return &tableError{c.name, &pipeline.StopError{Code: codeGenerated, Where: fmt.Sprintf("%s.%s at %s", c.full, name, r.at),
			Err: errors.New("the server leaves generated columns out of the rows it logs for an UPDATE, so their values are not known"),
			Fix: fmt.Sprintf("take the table out with \"!%s\" in `tables`, or make its generated columns a view", c.full)}}
	}
	if !e.full {
		return refuse("the log has some columns of the rows only", "binlog_row_image", "FULL")
	}
	if e.count != len(c.columns) {
		return &pipeline.StopError{Code: "binlog-damaged", Where: r.at.String(),
			Err: fmt.Errorf("rows of %s with %d columns behind a table map with %d", c.full, e.count, len(c.columns)),
			Fix: "check the binary log with mysqlbinlog"}
	}
	return nil
}

// onlyGenerated returns the name of a generated column that the images lack, if no
// other kind of column is lacking.
func (c *rowCodec) onlyGenerated(e rowsEvent) string {
	if e.full || e.count != len(c.columns) {
		return ""
	}
	name := ""
	for i := range c.columns {
		lacks := e.present[i>>3]&(1<<(i&7)) == 0 || e.after != nil && e.after[i>>3]&(1<<(i&7)) == 0
		if !lacks {
			continue
		}
		if !c.table.Columns[i].Generated {
			return ""
		}
		name = c.table.Columns[i].Name
	}
	return name
}

// emitRows adds a record for each row to the batch. A change of the key becomes a
// delete of the old and a create of the new.
func (r *reader) emitRows(h *replication.EventHeader, e rowsEvent, c *rowCodec) error {
	r.now = time.Now().UnixMilli()
	t := r.rowTime(h)
	r.sourceHead(c, h, t)
	images := e.images
	for n := int64(0); len(images) > 0; n++ {
		var err error
		r.batch.reserve(2*len(images) + 4096)
		if images, err = r.emitRow(e.op, images, c, t, n); err != nil {
			return r.undecodable(c, err)
		}
		if err := r.emitFull(); err != nil {
			return err
		}
	}
	return nil
}

// sourceHead prepares what the envelopes of an event have in common.
func (r *reader) sourceHead(c *rowCodec, h *replication.EventHeader, micros int64) {
	b := append(r.rowHead[:0], c.head...)
	b = strconv.AppendInt(b, micros/1000, 10)
	b = append(b, `,"snapshot":"false","server_id":`...)
	b = strconv.AppendUint(b, uint64(h.ServerID), 10)
	b = append(b, `,"gtid":`...)
	if r.tx.hasGTID {
		b = append(b, '"')
		b = append(b, r.tx.id...)
		b = append(b, '"')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"file":`...)
	b = appendJSONString(b, []byte(r.at.File))
	b = append(b, `,"pos":`...)
	b = strconv.AppendUint(b, r.at.Pos, 10)
	r.rowHead = append(b, `,"row":`...)
}

// envelopeEnd appends what stands behind the row's images.
func (r *reader) envelopeEnd(b []byte, op byte, row int64) []byte {
	b = append(b, r.rowHead...)
	b = strconv.AppendInt(b, row, 10)
	b = append(b, `},"op":"`...)
	b = append(b, op)
	b = append(b, `","ts_ms":`...)
	b = strconv.AppendInt(b, r.now, 10)
	return append(b, '}')
}

// emitRow adds the record of one row and returns the images behind it.
func (r *reader) emitRow(op byte, images []byte, c *rowCodec, micros, row int64) ([]byte, error) {
	a := r.batch.arena
	start := len(a)
	a = append(a, `{"before":`...)
	var err error
	var before, after span
	before.from = len(a)
	if op == 'c' {
		a = append(a, "null"...)
	} else {
		if a, images, err = c.row(a, images); err != nil {
			return nil, err
		}
		r.oldKey = c.key(r.oldKey[:0], a)
	}
	before.to = len(a)
	a = append(a, `,"after":`...)
	after.from = len(a)
	key := r.oldKey
	if op == 'd' {
		a = append(a, "null"...)
	} else {
		if a, images, err = c.row(a, images); err != nil {
			return nil, err
		}
		r.newKey = c.key(r.newKey[:0], a)
		key = r.newKey
	}
	after.to = len(a)
	if op == 'u' && !bytes.Equal(r.oldKey, r.newKey) {
		r.splitKeyChange(c, bytes.Clone(a[before.from:before.to]), bytes.Clone(a[after.from:after.to]), micros, row)
		return images, nil
	}
	a = r.envelopeEnd(a, op, row)
	valueEnd := len(a)
	r.add(append(a, key...), start, valueEnd, c.full, micros)
	return images, nil
}

// splitKeyChange adds a delete of the old key, then a create of the new one.
func (r *reader) splitKeyChange(c *rowCodec, before, after []byte, micros, row int64) {
	a := r.batch.arena
	start := len(a)
	a = append(a, `{"before":`...)
	a = append(a, before...)
	a = append(a, `,"after":null`...)
	a = r.envelopeEnd(a, 'd', row)
	end := len(a)
	a = append(a, r.oldKey...)
	r.add(a, start, end, c.full, micros)

	a = r.batch.arena
	start = len(a)
	a = append(a, `{"before":null,"after":`...)
	a = append(a, after...)
	a = r.envelopeEnd(a, 'c', row)
	end = len(a)
	a = append(a, r.newKey...)
	r.add(a, start, end, c.full, micros)
}

// add puts the record into the batch whose value and key stand at the end of a.
func (r *reader) add(a []byte, start, valueEnd int, full string, micros int64) {
	r.batch.arena = a
	value := a[start:valueEnd:valueEnd]
	var key []byte
	if len(a) > valueEnd {
		key = a[valueEnd:len(a):len(a)]
	}
	p := append(r.batch.positions, r.tx.id...)
	p = append(p, ':')
	p = append(p, full...)
	p = append(p, ':')
	r.batch.positions = strconv.AppendInt(p, r.tx.rows[full], 10)
	r.tx.rows[full]++
	r.beyond = true
	r.tx.held.collected(&r.batch, len(key)+len(value))
	r.batch.add(key, value, full, micros)
	if r.snap != nil {
		r.snap.touch(full, key)
	}
}

// emitTruncate adds the record that says a table was emptied.
func (r *reader) emitTruncate(h *replication.EventHeader, n tableName) {
	r.now = time.Now().UnixMilli()
	t := r.rowTime(h)
	c := rowCodec{head: sourceHead(r.reg.source, n.db, n.table)}
	r.sourceHead(&c, h, t)
	r.batch.reserve(4096)
	a := r.batch.arena
	start := len(a)
	a = append(a, `{"before":null,"after":null`...)
	a = r.envelopeEnd(a, 't', 0)
	r.add(a, start, len(a), n.String(), t)
}
