package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// envelope is what stands in the JSON of a change, in the form of Debezium's: raw
// bytes, not decoded.
type envelope struct {
	before, after, source, op []byte
	members                   int // of before, after, source, op that are present
}

// openEnvelope finds the parts of a change, also where the message carries its schema
// ({"schema": ..., "payload": {...}}).
func openEnvelope(value []byte) (envelope, error) {
	var e envelope
	err := members(payload(value), func(name, value []byte) {
		part := e.part(name)
		if part == nil {
			return
		}
		if *part == nil {
			e.members++
		}
		*part = value
	})
	return e, err
}

func (e *envelope) part(name []byte) *[]byte {
	switch string(name) {
	case "before":
		return &e.before
	case "after":
		return &e.after
	case "source":
		return &e.source
	case "op":
		return &e.op
	}
	return nil
}

// payload returns the inner object of {"schema": ..., "payload": {...}}, and any other
// object as it is.
func payload(value []byte) []byte {
	// The schema comes first in what Connect writes; most values stop here.
	i := skipSpace(value, skipSpace(value, 0)+1)
	if !bytes.HasPrefix(value[min(i, len(value)):], []byte(`"schema"`)) && !bytes.HasPrefix(value[min(i, len(value)):], []byte(`"payload"`)) {
		return value
	}
	var inner []byte
	n, schema := 0, false
	err := members(value, func(name, v []byte) {
		n++
		switch string(name) {
		case "schema":
			schema = true
		case "payload":
			inner = v
		}
	})
	if err != nil || n != 2 || !schema || !isObject(inner) {
		return value
	}
	return inner
}

// looksLikeChange reports whether the parts found are those of a change: Debezium
// always writes an operation, its source as an object, and an image.
func (e *envelope) looksLikeChange() bool {
	_, err := e.operation()
	return err == nil && isObject(e.source) && (e.before != nil || e.after != nil)
}

// operation returns the operation's letter.
func (e *envelope) operation() (Op, error) {
	if len(e.op) == 3 && e.op[0] == '"' {
		switch op := Op(e.op[1]); op {
		case OpCreate, OpUpdate, OpDelete, OpRead, OpTruncate:
			return op, nil
		}
	}
	if e.op == nil {
		return 0, errors.New("the change names no operation (op)")
	}
	return 0, fmt.Errorf("unknown operation %s: want c, u, d, r or t", bytes.TrimSpace(e.op))
}

// table returns "database.table" from the change's source. Debezium calls the
// schema of a PostgreSQL or SQL Server table "schema" and its database "db".
func (e *envelope) table() string {
	var s struct{ DB, Schema, Table string }
	if json.Unmarshal(e.source, &s) != nil || s.Table == "" {
		return ""
	}
	if s.Schema != "" {
		return s.Schema + "." + s.Table
	}
	return s.DB + "." + s.Table
}
