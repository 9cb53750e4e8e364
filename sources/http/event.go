package http

import (
	"bytes"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-json-experiment/json/jsontext"
)

// maxID bounds an id: every id within the window is kept in memory.
const maxID = 256

// eventReader turns elements into records.
type eventReader struct {
	keys  []string // time, id, key: the configured names, empty where not configured
	clock clockReader
}

// batch is a request's records and what is to be said of them.
type batch struct {
	records  []pipeline.Record
	repeated int // elements left out because an equal one stands before them
	arrivals int // records whose time is that of their arrival
	shifted  int // records whose wall-clock time named no instant, or two
}

// read returns the elements' records, or a *refusal that names the first element
// that is not right. name gives a Position to an element without an id.
func (r eventReader) read(elements []element, arrival time.Time, name func() string) (*batch, error) {
	b := &batch{records: make([]pipeline.Record, 0, len(elements))}
	byID := map[string]element{}
	for _, e := range elements {
		record := pipeline.Record{Value: e.value}
		found, err := members(e.value, r.keys)
		if err != nil {
			return nil, notJSON(e.at, err)
		}
		if r.keys[1] == "" {
			record.Position = name()
		} else {
			if record.Position, err = position(found[1]); err != nil {
				return nil, malformed(e.at, "id_field %q %v", r.keys[1], err)
			}
			if first, twice := byID[record.Position]; twice {
				if !bytes.Equal(first.value, e.value) {
					return nil, malformed(e.at, "has the id of %sbut is not equal to it", first.at)
				}
				b.repeated++
				continue
			}
			byID[record.Position] = e
		}
		if record.Key, err = recordKey(found[2]); err != nil {
			return nil, malformed(e.at, "key_field %q %v", r.keys[2], err)
		}
		if err := r.setTime(&record, found[0], arrival, b); err != nil {
			return nil, malformed(e.at, "time_field %q %v", r.keys[0], err)
		}
		b.records = append(b.records, record)
	}
	return b, nil
}

func (r eventReader) setTime(record *pipeline.Record, raw jsontext.Value, arrival time.Time, b *batch) error {
	if raw == nil || raw.Kind() == 'n' {
		record.Time = arrival.UnixMicro()
		record.Headers = []pipeline.Header{{Key: pipeline.HeaderTimeFrom, Value: []byte("arrival")}}
		b.arrivals++
		return nil
	}
	micros, s, err := r.clock.read(raw)
	if err != nil {
		return err
	}
	record.Time = micros
	if s != exact {
		b.shifted++
	}
	return nil
}

// position makes an id a Position. A number and a text of the same digits are two
// ids, since they are two values.
func position(raw jsontext.Value) (string, error) {
	if raw == nil || raw.Kind() == 'n' {
		return "", fmt.Errorf("is missing")
	}
	if len(raw) > 6*maxID {
		return "", fmt.Errorf("is longer than %d bytes", maxID)
	}
	prefix, id := "id:", string(raw)
	switch raw.Kind() {
	case '0':
		prefix = "id#"
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", fmt.Errorf("is not a text of whole characters")
		}
		id = string(text)
	default:
		return "", fmt.Errorf("is %s, want a text or a number", kindName(raw.Kind()))
	}
	if id == "" {
		return "", fmt.Errorf("is empty")
	}
	if len(id) > maxID {
		return "", fmt.Errorf("is longer than %d bytes", maxID)
	}
	return prefix + id, nil
}

// recordKey makes a member the record's key: a text's characters, else its JSON.
func recordKey(raw jsontext.Value) ([]byte, error) {
	switch raw.Kind() {
	case 'n', 0:
		return nil, nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, fmt.Errorf("is not a text of whole characters")
		}
		return text, nil
	case '{', '[':
		return nil, fmt.Errorf("is %s, want a text or a number", kindName(raw.Kind()))
	}
	return raw, nil
}
