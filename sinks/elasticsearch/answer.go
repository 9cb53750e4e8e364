package elasticsearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// cause is an error as Elasticsearch describes it.
type cause struct {
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	CausedBy *cause `json:"caused_by"`
}

// String returns type and reason, and those of the innermost cause.
func (c *cause) String() string {
	s := c.Type + ": " + c.Reason
	inner := c
	for inner.CausedBy != nil {
		inner = inner.CausedBy
	}
	if inner != c && inner.Reason != "" {
		s += " (" + inner.Type + ": " + inner.Reason + ")"
	}
	const enough = 1000
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "..."
	}
	return s
}

// answerError is an answer that reports a failure of the whole request.
type answerError struct {
	status int
	cause  cause
}

// newAnswerError reads the failure from the answer of Elasticsearch, or of a proxy that
// stands before it.
func newAnswerError(a answer) *answerError {
	e := &answerError{status: a.status}
	var body struct{ Error json.RawMessage }
	if json.Unmarshal(a.body, &body) == nil && len(body.Error) > 0 {
		if json.Unmarshal(body.Error, &e.cause) == nil && e.cause.Type != "" {
			return e
		}
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(a.body[:min(len(a.body), 200)]), ""))
	e.cause = cause{Type: "no answer of Elasticsearch's form", Reason: fmt.Sprintf("%q", text)}
	return e
}

// Error says what was answered, and what to do where someone must act.
func (e *answerError) Error() string {
	s := fmt.Sprintf("HTTP status %d: %s", e.status, e.cause.String())
	switch e.status {
	case 401:
		s += " (check user and password, or api_key)"
	case 403:
		s += " (the user lacks a privilege, or the index is blocked; the sink needs read, write, create_index, view_index_metadata and manage on its indices)"
	case 404:
		s += " (check urls: is this Elasticsearch, and at this path?)"
	}
	return s
}

// errorType returns the type of an *answerError, else nothing.
func errorType(err error) string {
	var e *answerError
	if errors.As(err, &e) {
		return e.cause.Type
	}
	return ""
}
