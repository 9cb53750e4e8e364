package storage

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// RecordHeader is a name and a value beside a record.
type RecordHeader struct {
	Key   string
	Value []byte
}

// The headers that say what a record's tag is: the first that it has.
const (
	TagHeader   = "daybook.tag"
	TableHeader = "daybook.table" // "database.table", on changes of a database
)

// plainRecord is a record of a batch that is being walked. Its bytes are valid until the next one.
type plainRecord struct {
	offset, timestamp int64
	key, value        []byte // nil for null
	headers           []byte // as they lie in the batch
	headerCount       int
}

// hashOf is the hash of a key or tag that the index files hold.
func hashOf(b []byte) uint64 { return xxhash.Sum64(b) }

// walker goes through the records of batches with the same memory. It is not safe for concurrent use; its zero value
// is ready.
type walker struct {
	unpacker unpacker
	in       *bufio.Reader
	buf      []byte
}

// each calls f with the records of a batch until it fails. body is what follows the header. Records above
// maxPlainBlock are an error.
func (w *walker) each(h Header, body []byte, f func(r *plainRecord) error) error {
	plain, err := w.unpacker.reader(h.Compression(), body)
	if err != nil {
		return fmt.Errorf("%w: unpacking: %w", ErrInvalidBatch, err)
	}
	if w.in == nil {
		w.in = bufio.NewReaderSize(nil, 64<<10)
	}
	in, buf := w.in, &w.buf
	in.Reset(plain)
	var r plainRecord
	for range h.Records {
		length, err := binary.ReadVarint(in)
		if err == nil && (length < leastRecord-1 || length > maxPlainBlock) {
			err = fmt.Errorf("record of %d bytes", length)
		}
		if err != nil {
			return fmt.Errorf("%w: reading its records: %w", ErrInvalidBatch, err)
		}
		if int64(cap(*buf)) < length {
			*buf = make([]byte, length, max(2*length, 4<<10))
		}
		*buf = (*buf)[:length]
		if _, err := io.ReadFull(in, *buf); err != nil {
			return fmt.Errorf("%w: reading its records: %w", ErrInvalidBatch, err)
		}
		if !r.parse(h, *buf) {
			return fmt.Errorf("%w: a record is shorter than its fields", ErrInvalidBatch)
		}
		if err := f(&r); err != nil {
			return err
		}
	}
	return nil
}

func (r *plainRecord) parse(h Header, b []byte) bool {
	d := varints{b: b[1:]} // behind the attributes
	ts, delta := d.next(), d.next()
	r.offset, r.timestamp = h.BaseOffset+delta, h.BaseTimestamp+ts
	if h.LogAppendTime() {
		r.timestamp = h.MaxTimestamp
	}
	r.key, r.value = d.bytes(), d.bytes()
	r.headerCount = int(d.next())
	r.headers = d.b
	return !d.bad && delta >= 0 && delta <= int64(h.LastDelta) && r.headerCount >= 0
}

// eachHeader calls f with the record's headers until it returns false.
func (r *plainRecord) eachHeader(f func(key, value []byte) bool) {
	d := varints{b: r.headers}
	for range r.headerCount {
		key, value := d.bytes(), d.bytes()
		if d.bad || !f(key, value) {
			return
		}
	}
}

// tag returns the record's tag, nil if it has none.
func (r *plainRecord) tag() []byte {
	var table []byte
	var tag []byte
	r.eachHeader(func(key, value []byte) bool {
		switch string(key) {
		case TagHeader:
			tag = value
		case TableHeader:
			table = value
		}
		return tag == nil
	})
	if tag != nil {
		return tag
	}
	return table
}

// varints reads the fields of a record. After the first that does not fit all are empty.
type varints struct {
	b   []byte
	bad bool
}

func (d *varints) next() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || d.bad {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes reads a field with its length before it; -1 is null.
func (d *varints) bytes() []byte {
	n := d.next()
	if n < 0 || d.bad {
		return nil
	}
	if n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}
