package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
)

// errNoObject says that a text is not one JSON object.
var errNoObject = errors.New("not a JSON object")

// members calls f with each member of the JSON object in data: the name without
// quotes and the value's bytes as they stand, both part of data unless the name
// holds an escape. It finds where values end and no more: what is inside a value
// is not checked. It is the reason why an envelope costs no decoding.
func members(data []byte, f func(name, value []byte)) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errNoObject
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return endOfText(data, i+1)
	}
	for {
		name, after, err := memberName(data, i)
		if err != nil {
			return err
		}
		start := skipSpace(data, after)
		end, err := skipValue(data, start)
		if err != nil {
			return err
		}
		f(name, data[start:end])
		i = skipSpace(data, end)
		if i >= len(data) {
			return errCutOff
		}
		switch data[i] {
		case ',':
			i = skipSpace(data, i+1)
		case '}':
			return endOfText(data, i+1)
		default:
			return fmt.Errorf("unexpected %q at byte %d of a JSON object", data[i], i)
		}
	}
}

var errCutOff = errors.New("the JSON text is cut off")

// memberName reads a quoted name and its colon.
func memberName(data []byte, i int) (name []byte, after int, err error) {
	if i >= len(data) || data[i] != '"' {
		return nil, 0, fmt.Errorf("want a quoted name at byte %d of a JSON object", i)
	}
	end, escaped, err := skipString(data, i)
	if err != nil {
		return nil, 0, err
	}
	name = data[i+1 : end-1]
	if escaped {
		var s string
		if err := json.Unmarshal(data[i:end], &s); err != nil {
			return nil, 0, fmt.Errorf("name at byte %d of a JSON object: %w", i, err)
		}
		name = []byte(s)
	}
	i = skipSpace(data, end)
	if i >= len(data) || data[i] != ':' {
		return nil, 0, fmt.Errorf("want a colon at byte %d of a JSON object", i)
	}
	return name, i + 1, nil
}

// skipValue returns the index behind the value that begins at i.
func skipValue(data []byte, i int) (int, error) {
	if i >= len(data) {
		return 0, errCutOff
	}
	switch data[i] {
	case '"':
		end, _, err := skipString(data, i)
		return end, err
	case '{', '[':
		return skipNested(data, i)
	}
	start := i
	for i < len(data) && !endsPlain(data[i]) {
		i++
	}
	if i == start {
		return 0, fmt.Errorf("want a value at byte %d of a JSON object", i)
	}
	return i, nil
}

// skipNested returns the index behind the object or array that begins at i.
func skipNested(data []byte, i int) (int, error) {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			end, _, err := skipString(data, i)
			if err != nil {
				return 0, err
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return 0, errCutOff
}

// skipString returns the index behind the string that begins at i.
func skipString(data []byte, i int) (end int, escaped bool, err error) {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i + 1, escaped, nil
		case '\\':
			escaped = true
			i++
		}
	}
	return 0, false, errCutOff
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

func endsPlain(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

func endOfText(data []byte, i int) error {
	if i = skipSpace(data, i); i != len(data) {
		return fmt.Errorf("more text follows the JSON object at byte %d", i)
	}
	return nil
}

// isObject reports whether the first thing in data is a brace.
func isObject(data []byte) bool {
	i := skipSpace(data, 0)
	return i < len(data) && data[i] == '{'
}
