package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteSchema writes the JSON Schema (draft 2020-12) of a file with the given root,
// by which editors complete and check. It allows what Decode allows, but for rules
// that concern several fields and those that a schema can't say.
func WriteSchema(w io.Writer, title string, root Section) error {
	schema := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}}
	schema = append(schema, sectionSchema(root)...)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		return fmt.Errorf("writing JSON Schema: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// object is a JSON object whose members keep their order, so that the generated file
// changes only where a declaration does.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// sectionSchema returns the schema of a section. A section without a required field
// may stand in the file as a key with nothing behind it.
func sectionSchema(s Section) object {
	properties := object{}
	var required []string
	var choices []object
	for _, fd := range declared(s) {
		if fd.kind == KindOneOf {
			for _, c := range fd.choices {
				p := append(object{{"description", c.Doc}}, sectionSchema(c.New())...)
				properties = append(properties, member{c.Key, p})
				choices = append(choices, object{{"required", []string{c.Key}}})
			}
			continue
		}
		properties = append(properties, member{fd.key, fd.schema()})
		if fd.required() {
			required = append(required, fd.key)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	if len(choices) > 0 {
		out = append(out, member{"oneOf", choices})
	}
	if len(required)+len(choices) == 0 {
		out[0].value = []string{"object", "null"}
	}
	return out
}

// Patterns of values that are texts in YAML and more to Decode.
const (
	durationPattern = `^([0-9]+d|0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$`
	sizePattern     = `^[0-9]+ *(TiB|GiB|MiB|KiB|TB|GB|MB|kB|KB|B)$`
	timePattern     = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`
)

func (f *field) schema() object {
	out := object{{"description", f.sentence()}}
	switch f.kind {
	case KindString:
		out = append(out, member{"type", "string"})
		out = append(out, f.textRules()...)
	case KindBool:
		out = append(out, member{"type", "boolean"})
	case KindInt:
		out = append(out, member{"type", "integer"})
		out = append(out, f.numberRules()...)
	case KindDuration:
		out = append(out, member{"type", "string"}, member{"pattern", durationPattern})
	case KindSize:
		out = append(out, member{"type", "string"}, member{"pattern", sizePattern})
	case KindTime:
		out = append(out, member{"type", "string"}, member{"pattern", timePattern})
	case KindStrings:
		out = append(out, member{"type", "array"}, member{"items", append(object{{"type", "string"}}, f.textRules()...)})
		out = append(out, f.listRules()...)
	case KindSecret:
		out = append(out, secretSchema()...)
	case KindSection:
		return append(out, sectionSchema(f.element())...)
	case KindList:
		out = append(out, member{"type", "array"}, member{"items", sectionSchema(f.element())})
		return append(out, f.listRules()...)
	}
	if f.def != "" && !f.required() {
		out = append(out, member{"default", f.defaultValue()})
	}
	return out
}

// defaultValue is the default as a reader of YAML sees it.
func (f *field) defaultValue() any {
	switch v := f.value.(type) {
	case string, bool, int, []string:
		return v
	case time.Duration:
		return showDuration(v)
	case int64:
		return showSize(v)
	}
	return f.def
}

// sentence is the field's documentation with the rules that the schema can't say.
func (f *field) sentence() string {
	s := f.doc
	for _, r := range f.rules {
		if r.pattern != "" || r.enum != nil || r.required || r.notEmpty {
			continue
		}
		if text := r.text(f.value); text != "" {
			s = strings.TrimSuffix(s, ".") + " (" + text + ")."
		}
	}
	return s
}

func (f *field) textRules() object {
	var out object
	var patterns []object
	for _, r := range f.rules {
		switch {
		case r.enum != nil:
			out = append(out, member{"enum", r.enum})
		case r.pattern != "":
			patterns = append(patterns, object{{"pattern", r.pattern}})
		case r.notEmpty && f.kind == KindString:
			out = append(out, member{"minLength", 1})
		}
	}
	switch len(patterns) {
	case 0:
	case 1:
		out = append(out, patterns[0]...)
	default:
		out = append(out, member{"allOf", patterns})
	}
	return out
}

func (f *field) numberRules() object {
	var out object
	for _, r := range f.rules {
		if r.positive {
			out = append(out, member{"minimum", 1})
		}
		if r.bounds != nil {
			out = append(out, member{"minimum", r.bounds.lo}, member{"maximum", r.bounds.hi})
		}
	}
	return out
}

func (f *field) listRules() object {
	for _, r := range f.rules {
		if r.notEmpty {
			return object{{"minItems", 1}}
		}
	}
	return nil
}

func secretSchema() object {
	one := func(key, doc string) object {
		return object{
			{"type", "object"},
			{"properties", object{{key, object{{"type", "string"}, {"minLength", 1}, {"description", doc}}}}},
			{"required", []string{key}},
			{"additionalProperties", false},
		}
	}
	return object{{"oneOf", []object{
		one("env", "Name of the environment variable that holds the value."),
		one("file", "Path of the file that holds the value, less one line break at its end."),
	}}}
}
