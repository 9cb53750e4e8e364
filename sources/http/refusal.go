package http

import (
	"errors"
	"fmt"
	"io"
	nethttp "net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// refusal is why a request is not taken. It is an error so that the parts of a
// request's way can return it; the handler turns it into the answer.
type refusal struct {
	status  int
	message string
	at      place
}

// place is where in the body the refused element stands. The zero place is the
// body as a whole.
type place struct {
	inArray bool
	index   int // from 0, in an array
	line    int // from 1, in a body of lines
}

func (p place) String() string {
	switch {
	case p.line > 0:
		return fmt.Sprintf("line %d: ", p.line)
	case p.inArray:
		return fmt.Sprintf("element %d: ", p.index)
	}
	return ""
}

// Error is the sentence that the client gets.
func (r *refusal) Error() string { return r.at.String() + r.message }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, args...)}
}

func malformed(at place, format string, args ...any) *refusal {
	return &refusal{status: nethttp.StatusBadRequest, message: fmt.Sprintf(format, args...), at: at}
}

// notJSON words what the JSON reader found.
func notJSON(at place, err error) *refusal {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return malformed(at, "the key %q stands twice in an object", clip(syntax.JSONPointer.LastToken()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed(at, "ends in the middle of a value")
	case errors.As(err, &syntax):
		return malformed(at, "is not JSON: %v at byte %d", syntax.Err, syntax.ByteOffset)
	}
	return malformed(at, "is not JSON: %v", err)
}

// kindName says a JSON value's kind as in "is a number".
func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "no value"
}
