package nginx

import (
	"bytes"
	"fmt"
	"strings"
)

// span is where in a line a field's value stands.
type span struct{ from, to int }

// matchSteps bounds the places that are tried for one line: a value that repeats
// the text between variables must not cost more than its bytes are worth.
const matchSteps = 2000

// matcher finds the fields of lines. It keeps its memory between lines, so it must
// not be shared.
type matcher struct {
	t     *template
	line  []byte
	spans []span
	steps int
	// deepest is the longest run of fields that fitted, kept to say where a line that
	// does not fit stops, and for what can be saved of it.
	deepest []span
	stopped int // where in the line the field after deepest begins
}

func newMatcher(t *template) *matcher {
	return &matcher{t: t, spans: make([]span, len(t.fields)), deepest: make([]span, 0, len(t.fields))}
}

// match returns the spans of all fields, or those that fitted and why not all did.
// The spans are valid until the next call.
func (m *matcher) match(line []byte) (spans []span, reason string) {
	m.line, m.steps, m.deepest, m.stopped = line, matchSteps, m.deepest[:0], 0
	if !bytes.HasPrefix(line, []byte(m.t.lead)) {
		return nil, fmt.Sprintf("does not begin with %q", m.t.lead)
	}
	m.stopped = len(m.t.lead)
	if m.from(0, len(m.t.lead)) {
		return m.spans, ""
	}
	return m.deepest, m.reason()
}

// from matches the fields from i on against the line from pos on.
func (m *matcher) from(i, pos int) bool {
	f := &m.t.fields[i]
	last := i == len(m.t.fields)-1
	if f.after == "" {
		end := len(m.line)
		if !last {
			end = pos + f.class.run(m.line[pos:])
		}
		return m.take(i, pos, end, end)
	}
	for search := pos; m.steps > 0; m.steps-- {
		at := bytes.Index(m.line[search:], []byte(f.after))
		if at < 0 {
			return false
		}
		end := search + at
		if last { // its text is the line's end
			end = len(m.line) - len(f.after)
			return end >= pos && bytes.HasSuffix(m.line, []byte(f.after)) && m.take(i, pos, end, len(m.line))
		}
		if m.take(i, pos, end, end+len(f.after)) {
			return true
		}
		search = end + 1
	}
	return false
}

// take gives field i the bytes from pos to end if they can be its value, and goes on
// at next.
func (m *matcher) take(i, pos, end, next int) bool {
	f := &m.t.fields[i]
	if !f.class.valid(m.line[pos:end]) {
		return false
	}
	m.spans[i] = span{pos, end}
	if i+1 > len(m.deepest) {
		m.deepest = append(m.deepest[:0], m.spans[:i+1]...)
		m.stopped = next
	}
	if i == len(m.t.fields)-1 {
		return next == len(m.line)
	}
	return m.from(i+1, next)
}

// reason says where the line stopped fitting.
func (m *matcher) reason() string {
	switch i := len(m.deepest); {
	case m.steps <= 0:
		return "too ambiguous for the format"
	case i == len(m.t.fields):
		return fmt.Sprintf("goes on after the end of the format at byte %d", m.stopped)
	default:
		f := m.t.fields[i]
		if f.after != "" && !strings.Contains(string(m.line[m.stopped:]), f.after) {
			return fmt.Sprintf("ends within $%s: no %q after byte %d", f.name, f.after, m.stopped)
		}
		return fmt.Sprintf("no $%s at byte %d", f.name, m.stopped)
	}
}
