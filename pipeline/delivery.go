package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"
)

// NewDelivery decodes a record of the journal, as far as that costs nothing: the
// images stay raw bytes.
//
//   - A record with the header daybook.table is a change.
//   - So is a record of a foreign topic (without daybook.source) whose value has the
//     form of Debezium's envelope.
//   - A record without a value is a delete; Before then holds the key's columns, where
//     the key has any.
//   - Any other JSON object is an event: OpCreate, After is the object.
//   - Anything else has no images; its bytes are in Value.
//
// An error says what is wrong with the envelope of a change: a reason for a dead letter.
func NewDelivery(r Record, epoch uint16) (Delivery, error) {
	d := Delivery{Record: r, Op: OpCreate, Version: r.Version(epoch)}
	switch {
	case r.Value == nil:
		d.Op, d.partial = OpDelete, true
		if object, ok := keyObject(r.Key); ok {
			d.Before = NewRow(object)
		}
		return d, nil
	case r.Table != "":
		e, err := openEnvelope(r.Value)
		if err != nil {
			return d, fmt.Errorf("reading the envelope of a change: %w", err)
		}
		return d, d.setChange(&e)
	case !isObject(r.Value) || !json.Valid(r.Value):
		return d, nil
	case r.Source == "":
		e, err := openEnvelope(r.Value)
		if err == nil && e.looksLikeChange() {
			d.Table = e.table()
			d.partial = true // not every database logs the whole row
			return d, d.setChange(&e)
		}
	}
	d.After = NewRow(r.Value)
	return d, nil
}

// setChange fills in what the envelope says, and holds it against its operation.
func (d *Delivery) setChange(e *envelope) error {
	op, err := e.operation()
	if err != nil {
		return err
	}
	d.Op = op
	d.Before, d.After = NewRow(e.before), NewRow(e.after)
	switch op {
	case OpCreate, OpUpdate, OpRead:
		if d.After.Absent() {
			return fmt.Errorf("a change with op %q has no after image", op)
		}
	case OpDelete:
		if d.Before.Absent() {
			d.partial = true
			if object, ok := keyObject(d.Key); ok {
				d.Before = NewRow(object)
			}
		}
	}
	return nil
}

// Change reports whether the delivery is a change of a table, as opposed to an event.
func (d *Delivery) Change() bool { return d.Table != "" }

// Names splits Table into database and table. Both are empty for an event.
func (r *Record) Names() (db, table string) {
	db, table, found := strings.Cut(r.Table, ".")
	if !found {
		return "", r.Table
	}
	return db, table
}

// KeyText returns the record's key as {key} of a Template gives it.
func (r *Record) KeyText() (string, error) { return keyText(r.Key) }

// String returns the operation's letter.
func (o Op) String() string { return string(rune(o)) }
