package http

import (
	"bytes"
	"errors"
	"io"
	nethttp "net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// form is how a body is to be read, from its Content-Type.
type form int

const (
	formAny   form = iota // told by the body
	formJSON              // one object or one array
	formLines             // an object a line
)

// element is one event of a body, and where it stood.
type element struct {
	value jsontext.Value // compact, owned by the element
	at    place
}

// decode splits a body into its events. It returns all of them or a *refusal.
func decode(body []byte, f form, most int) ([]element, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if i := invalidUTF8(body); i >= 0 {
		return nil, malformed(place{}, "the body is not UTF-8 at byte %d", i)
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, malformed(place{}, "the body is empty")
	}
	switch {
	case f == formLines:
		return decodeLines(body, most)
	case trimmed[0] == '[':
		return decodeArray(body, most)
	case trimmed[0] != '{':
		return nil, malformed(place{}, "want an object, an array of objects, or a line for each object")
	}
	e, rest, err := decodeObject(body, place{})
	switch {
	case err == nil && len(rest) == 0:
		return []element{e}, nil
	case f == formAny && bytes.IndexByte(bytes.TrimSpace(body), '\n') >= 0 && (err != nil || rest[0] == '{'):
		return decodeLines(body, most)
	case err != nil:
		return nil, err
	}
	return nil, malformed(place{}, "goes on after its object: send an array, or lines as application/x-ndjson")
}

// newDecoder reads b where it lies. Escapes of lone surrogates pass: they come from
// browsers that cut texts in the middle of a character, and are kept as sent.
func newDecoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true))
}

func decodeArray(body []byte, most int) ([]element, error) {
	d := newDecoder(body)
	if _, err := d.ReadToken(); err != nil {
		return nil, notJSON(place{}, err)
	}
	var elements []element
	for d.PeekKind() != ']' {
		at := place{inArray: true, index: len(elements)}
		if len(elements) == most {
			return nil, tooMany(most)
		}
		e, err := readObject(d, at)
		if err != nil {
			return nil, err
		}
		elements = append(elements, e)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, notJSON(place{}, err)
	}
	if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
		return nil, malformed(place{}, "goes on after its array")
	}
	return elements, nil
}

func decodeLines(body []byte, most int) ([]element, error) {
	var elements []element
	for line := 1; len(body) > 0; line++ {
		var text []byte
		text, body, _ = bytes.Cut(body, []byte("\n"))
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if len(elements) == most {
			return nil, tooMany(most)
		}
		at := place{line: line}
		e, rest, err := decodeObject(text, at)
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			return nil, malformed(at, "goes on after its object")
		}
		elements = append(elements, e)
	}
	return elements, nil
}

// decodeObject reads the object that b begins with and returns what follows it,
// without white space around.
func decodeObject(b []byte, at place) (element, []byte, error) {
	d := newDecoder(b)
	e, err := readObject(d, at)
	if err != nil {
		return element{}, nil, err
	}
	return e, bytes.TrimSpace(b[d.InputOffset():]), nil
}

// readObject reads the next value, which must be an object.
func readObject(d *jsontext.Decoder, at place) (element, error) {
	k := d.PeekKind()
	raw, err := d.ReadValue()
	if err != nil {
		return element{}, notJSON(at, err)
	}
	if k != '{' {
		return element{}, malformed(at, "is %s, want an object", kindName(k))
	}
	value := raw.Clone() // the decoder's bytes are the body's, and would keep it alive
	if err := value.Compact(); err != nil {
		return element{}, notJSON(at, err)
	}
	return element{value: value, at: at}, nil
}

func tooMany(most int) *refusal {
	return refuse(nethttp.StatusRequestEntityTooLarge, "more than %d elements in a request: send fewer at a time", most)
}

// members reads the values of some top-level keys of a compact object in one pass;
// a key that is not there, or is empty, gives nil.
func members(object jsontext.Value, keys []string) ([]jsontext.Value, error) {
	found := make([]jsontext.Value, len(keys))
	d := newDecoder(object)
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		wanted := false
		for _, k := range keys {
			wanted = wanted || k == key && k != ""
		}
		if !wanted {
			if err := d.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		v, err := d.ReadValue()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for i, k := range keys {
			if k == key {
				found[i] = v.Clone()
			}
		}
	}
	return found, nil
}

// invalidUTF8 returns where b stops being UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
