package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Row is one image of a row, or the value of an event: a JSON object. It keeps
// the bytes as they stand in the record, so that what is passed on is exact, and
// decodes fields only when asked. A Row is not safe for concurrent use.
type Row struct {
	raw    json.RawMessage
	fields map[string]any
}

// NewRow returns the Row with the given JSON object. The bytes are not copied.
func NewRow(raw []byte) Row {
	if bytes.Equal(raw, []byte("null")) {
		raw = nil
	}
	return Row{raw: raw}
}

// Absent reports whether there is no such image (the before of an insert).
func (r *Row) Absent() bool { return len(r.raw) == 0 }

// JSON returns the object's bytes as they stand in the record; nil where Absent.
func (r *Row) JSON() []byte { return r.raw }

// Fields returns the object's fields: string, bool, nil, json.Number, and slices and
// maps of these. Numbers keep all their digits. The map belongs to the Row.
func (r *Row) Fields() (map[string]any, error) {
	if r.fields != nil || r.Absent() {
		return r.fields, nil
	}
	d := json.NewDecoder(bytes.NewReader(r.raw))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("decoding row: %w", err)
	}
	r.fields = fields
	return fields, nil
}

// Field returns the bytes of one field's value as they stand in the record, without
// decoding the rest; ok is false where there is no such field. Of fields that stand
// twice the last counts, as for Fields.
func (r *Row) Field(name string) (value []byte, ok bool, err error) {
	if r.Absent() {
		return nil, false, nil
	}
	err = members(r.raw, func(n, v []byte) {
		if string(n) == name {
			value, ok = v, true
		}
	})
	return value, ok, err
}
