package file

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/daybook-data/daybook/pipeline"
)

// appendLine appends the record as one line. A value that is JSON stands there as it is, without the line breaks that
// may lie between its parts. Any other value, or none, is wrapped in an object with a name that tells what it was:
//
//	{"daybook.text":"..."}                    valid UTF-8
//	{"daybook.base64":"..."}                  other bytes
//	{"daybook.tombstone":true,"key":...}      no value; the key in the same form
//
// A change that `where` has turned into another one is written as that: with its own op, and the images it has left.
func appendLine(b []byte, d *pipeline.Delivery) ([]byte, error) {
	switch {
	case d.Value == nil:
		b = append(b, `{"daybook.tombstone":true,"key":`...)
		b = appendValue(b, d.Key)
		b = append(b, '}')
	case d.Change():
		value, err := asDelivered(d)
		if err != nil {
			return b, err
		}
		b = appendJSON(b, value)
	case !d.After.Absent():
		b = appendJSON(b, d.Value) // known to be an object
	default:
		b = appendValue(b, d.Value)
	}
	return append(b, '\n'), nil
}

func appendValue(b, v []byte) []byte {
	switch {
	case v == nil:
		return append(b, "null"...)
	case json.Valid(v):
		return appendJSON(b, v)
	case utf8.Valid(v):
		text, err := json.Marshal(string(v))
		if err != nil {
			panic(err) // a string can always be encoded
		}
		b = append(b, `{"daybook.text":`...)
		b = append(b, text...)
		return append(b, '}')
	}
	b = append(b, `{"daybook.base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, `"}`...)
}

// appendJSON appends a JSON text on one line.
func appendJSON(b, v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return append(b, bytes.TrimSpace(v)...)
	}
	var one bytes.Buffer
	if err := json.Compact(&one, v); err != nil {
		panic(fmt.Sprintf("file: a valid JSON text can't be compacted: %v", err))
	}
	return append(b, one.Bytes()...)
}

// asDelivered returns the envelope of a change, changed where `where` has made another change of it.
func asDelivered(d *pipeline.Delivery) ([]byte, error) {
	var head struct {
		Op      string `json:"op"`
		Payload *struct {
			Op string `json:"op"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(d.Value, &head); err != nil {
		return nil, fmt.Errorf("the value of a change is no JSON object: %w", err)
	}
	if head.Payload != nil && head.Op == "" {
		head.Op = head.Payload.Op
	}
	if head.Op == d.Op.String() {
		return d.Value, nil
	}
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(d.Value, &envelope); err != nil {
		return nil, err
	}
	inner := envelope
	if head.Payload != nil {
		inner = nil
		if err := json.Unmarshal(envelope["payload"], &inner); err != nil {
			return nil, err
		}
	}
	inner["op"], _ = json.Marshal(d.Op.String())
	inner["before"], inner["after"] = image(&d.Before), image(&d.After)
	return json.Marshal(inner)
}

func image(r *pipeline.Row) json.RawMessage {
	if r.Absent() {
		return json.RawMessage("null")
	}
	return r.JSON()
}
