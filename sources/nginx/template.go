package nginx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// template is a log_format, compiled. It does not change and may be shared.
type template struct {
	escape escape
	lead   string // text before the first variable
	fields []field
	// object says that the format's text is a JSON object; a line is then one too,
	// and is kept as such.
	object bool
	// timeField is the field with the event time; -1 where the format has none.
	timeField int
	// splitRequest says that method, URI and protocol are to be taken from $request.
	splitRequest bool
}

// field is one variable of a format, and the text behind it.
type field struct {
	name   string // without the $
	key    string // in the record's value
	class  class
	after  string // empty at the end, and before a variable that follows directly
	quoted bool   // in an object: inside a JSON text
}

// reserved keys are ours; a variable of this name gets another key.
func reserved(key string) bool {
	switch key {
	case "line", "unparsed", "escaped", "piece", "last", "nul_bytes":
		return true
	}
	return false
}

// compile reads a format in nginx's syntax. timeField names the variable with the
// event time; empty takes the most exact that the format has.
func compile(format string, e escape, timeField string) (*template, error) {
	text, e, err := readFormat(format, e)
	if err != nil {
		return nil, err
	}
	t := &template{escape: e, timeField: -1}
	if err := t.split(text); err != nil {
		return nil, err
	}
	if err := t.checkNeighbours(); err != nil {
		return nil, err
	}
	if err := t.detectObject(); err != nil {
		return nil, err
	}
	t.nameKeys()
	return t, t.findTime(timeField)
}

// split cuts the format into texts and variables.
func (t *template) split(text string) error {
	if strings.ContainsAny(text, "\n\r") {
		return errors.New("the format holds a line break; records would span lines")
	}
	literal := &t.lead
	for text != "" {
		before, rest, found := strings.Cut(text, "$")
		*literal += before
		if !found {
			break
		}
		name, after, err := variable(rest)
		if err != nil {
			return err
		}
		t.fields = append(t.fields, field{name: name, class: classOf(name)})
		literal, text = &t.fields[len(t.fields)-1].after, after
	}
	if len(t.fields) == 0 {
		return errors.New("the format has no variable: want a log_format such as '$remote_addr [$time_local] \"$request\" $status', or combined")
	}
	return nil
}

// variable reads the name behind a $.
func variable(s string) (name, rest string, err error) {
	braced := strings.HasPrefix(s, "{")
	if braced {
		s = s[1:]
	}
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	switch {
	case i == 0:
		return "", "", fmt.Errorf("a $ without the name of a variable before %q", s)
	case braced && (i == len(s) || s[i] != '}'):
		return "", "", fmt.Errorf("the brace of ${%s is not closed", s[:i])
	case braced:
		return s[:i], s[i+1:], nil
	}
	return s[:i], s[i:], nil
}

// checkNeighbours refuses two variables of which nothing tells where one ends.
func (t *template) checkNeighbours() error {
	for i := range len(t.fields) - 1 {
		a, b := t.fields[i], t.fields[i+1]
		if a.after == "" && !a.class.endsBefore(b.class) {
			return fmt.Errorf("nothing between $%s and $%s tells where one ends: put a character between them in nginx's log_format", a.name, b.name)
		}
	}
	return nil
}

// detectObject finds out whether the format is a JSON object, by reading one made of
// it.
func (t *template) detectObject() error {
	if !strings.HasPrefix(strings.TrimSpace(t.lead), "{") {
		return nil
	}
	sample := t.lead
	inText := quoteState(false, t.lead)
	for i := range t.fields {
		f := &t.fields[i]
		f.quoted = inText
		sample += "0" + f.after
		inText = quoteState(inText, f.after)
	}
	if err := objectError(sample); err != nil {
		return fmt.Errorf("the format begins like a JSON object but makes none: %w", err)
	}
	t.object = true
	return nil
}

// quoteState says whether a JSON text is open after s.
func quoteState(open bool, s string) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && open:
			i++
		case s[i] == '"':
			open = !open
		}
	}
	return open
}

// objectError says why s is not one JSON object, nil if it is.
func objectError(s string) error {
	if jsontext.Value(s).IsValid() {
		return nil
	}
	d := jsontext.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.ReadValue(); err != nil {
			var syntax *jsontext.SyntacticError
			switch {
			case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
				return fmt.Errorf("the key %q stands twice", syntax.JSONPointer.LastToken())
			case errors.As(err, &syntax):
				return syntax.Err
			}
			return err
		}
	}
}

// nameKeys gives each variable its key. A second use of a variable, or a name that
// is ours, gets a number.
func (t *template) nameKeys() {
	used := map[string]bool{}
	for i := range t.fields {
		f := &t.fields[i]
		f.key = f.name
		for n := 2; used[f.key] || reserved(f.key); n++ {
			f.key = fmt.Sprintf("%s_%d", f.name, n)
		}
		used[f.key] = true
	}
	t.splitRequest = used["request"] && !used["request_method"] && !used["request_uri"] && !used["server_protocol"] && !t.object
}

// findTime chooses the field with the event time.
func (t *template) findTime(name string) error {
	if name != "" {
		for i, f := range t.fields {
			if f.name == strings.TrimPrefix(name, "$") {
				t.timeField = i
				return nil
			}
		}
		return fmt.Errorf("time_field %q is no variable of the format", name)
	}
	for _, name := range []string{"msec", "time_iso8601", "time_local"} {
		for i, f := range t.fields {
			if f.name == name {
				t.timeField = i
				return nil
			}
		}
	}
	return nil
}
