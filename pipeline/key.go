package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// keySeparator stands between the values of a composite key; inside a value it is
// written with a backslash, so that ("a_b","c") and ("a","b_c") stay apart.
const keySeparator = '_'

// keyText returns a record's key as one text: a plain key as it is, a key of one
// column as its value, a key of several as the values in the key's own order, joined
// so that different keys never give the same text.
func keyText(key []byte) (string, error) {
	if len(key) == 0 {
		return "", errors.New("the record has no key")
	}
	object, ok := keyObject(key)
	if !ok {
		return string(key), nil
	}
	var values []string
	var bad error
	err := members(object, func(name, value []byte) {
		text, err := scalarText(value)
		if err != nil && bad == nil {
			bad = fmt.Errorf("column %q of the key: %w", name, err)
		}
		values = append(values, text)
	})
	if err = errors.Join(err, bad); err != nil {
		return "", err
	}
	switch len(values) {
	case 0:
		return "", errors.New("the record's key has no columns")
	case 1:
		return values[0], nil
	}
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(keySeparator)
		}
		for j := range len(v) {
			if v[j] == keySeparator || v[j] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(v[j])
		}
	}
	return b.String(), nil
}

// keyObject returns the JSON object of key columns: the key itself, or the payload
// of a key that carries its schema. ok is false for a key that is plain bytes.
func keyObject(key []byte) (object []byte, ok bool) {
	if !isObject(key) || !json.Valid(key) {
		return nil, false
	}
	return payload(key), true
}

// scalarText returns a JSON text, number or truth value as plain text, numbers with
// all their digits.
func scalarText(value []byte) (string, error) {
	if len(value) == 0 {
		return "", errors.New("is empty")
	}
	switch value[0] {
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", err
		}
		return s, nil
	case 'n':
		return "", errors.New("is null")
	case '{':
		return "", errors.New("is an object, want a text, number or truth value")
	case '[':
		return "", errors.New("is a list, want a text, number or truth value")
	}
	return string(value), nil
}
