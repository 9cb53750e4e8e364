package configs

import (
	"time"

	"gopkg.in/yaml.v3"
)

// Section is a part of the file with fields of its own. Fields is called once for
// decoding and once for each document that is generated; it must do nothing but
// declare.
type Section interface {
	Fields(f *Fields)
}

// Checker is a Section with rules that concern several fields. Check is called
// after all fields were decoded without a problem.
type Checker interface {
	Section
	Check(at *At)
}

// Fields collects the declarations of one section, in the order of the documents.
type Fields struct {
	list []*field
}

// field is one declaration.
type field struct {
	key, doc string
	kind     Kind
	def      string // as it would stand in the file; empty where there is none
	value    any    // the default, or the zero value where there is none
	rules    []Rule

	setDefault func()
	decode     func(d *decoder, n *yaml.Node, path string)

	element func() Section // of a section, or of a list of sections
	choices []Choice       // of OneOf; key is then empty
}

func (f *field) required() bool {
	for _, r := range f.rules {
		if r.required {
			return true
		}
	}
	return false
}

// add declares one field of a plain type: how it is read and how it is shown.
func add[T any](f *Fields, kind Kind, target *T, key string, def T, doc string, parse func(*yaml.Node) (T, error), show func(T) string, rules []Rule) {
	fd := &field{key: key, doc: doc, kind: kind, def: show(def), value: def, rules: rules}
	fd.setDefault = func() { *target = def }
	fd.decode = func(d *decoder, n *yaml.Node, path string) {
		v, err := parse(n)
		if err != nil {
			d.problem(at(err, n), path, err.Error())
			return
		}
		for _, r := range rules {
			if r.check == nil {
				continue
			}
			if err := r.check(v); err != nil {
				d.problem(n, path, err.Error())
				return
			}
		}
		*target = v
	}
	f.list = append(f.list, fd)
}

// String declares a text.
func (f *Fields) String(target *string, key, def, doc string, rules ...Rule) {
	add(f, KindString, target, key, def, doc, parseString, showString, rules)
}

// Bool declares a switch: true or false.
func (f *Fields) Bool(target *bool, key string, def bool, doc string, rules ...Rule) {
	add(f, KindBool, target, key, def, doc, parseBool, showBool, rules)
}

// Int declares a whole number.
func (f *Fields) Int(target *int, key string, def int, doc string, rules ...Rule) {
	add(f, KindInt, target, key, def, doc, parseInt, showInt, rules)
}

// Duration declares a length of time: 500ms, 5s, 10m, 1h, 7d.
func (f *Fields) Duration(target *time.Duration, key string, def time.Duration, doc string, rules ...Rule) {
	add(f, KindDuration, target, key, def, doc, parseDuration, showDuration, rules)
}

// Size declares a number of bytes: 64KiB, 16MiB, 2GiB, or 512B.
func (f *Fields) Size(target *int64, key string, def int64, doc string, rules ...Rule) {
	add(f, KindSize, target, key, def, doc, parseSize, showSize, rules)
}

// Time declares an instant, RFC 3339 with a zone. The zero time is "none".
func (f *Fields) Time(target *time.Time, key string, doc string, rules ...Rule) {
	add(f, KindTime, target, key, time.Time{}, doc, parseTime, showTime, rules)
}

// Strings declares a list of texts.
func (f *Fields) Strings(target *[]string, key string, def []string, doc string, rules ...Rule) {
	add(f, KindStrings, target, key, def, doc, parseStrings, showStrings, rules)
}

// Secret declares a value that is never written in the file nor shown anywhere:
// {env: NAME} or {file: PATH}.
func (f *Fields) Secret(target *Secret, key, doc string, rules ...Rule) {
	add(f, KindSecret, target, key, Secret{}, doc, parseSecret, func(Secret) string { return "" }, rules)
	fd := f.list[len(f.list)-1]
	whole := fd.decode
	fd.decode = func(d *decoder, n *yaml.Node, path string) {
		if d.wanted == nil || d.wanted(path) {
			whole(d, n, path)
			return
		}
		if _, _, err := parseSecretRef(n); err != nil {
			d.problem(at(err, n), path, err.Error())
			return
		}
		*target = NewSecret("")
	}
}

// Sub declares a section that is always there; its fields have their own defaults.
func (f *Fields) Sub(target Section, key, doc string) {
	f.list = append(f.list, &field{
		key: key, doc: doc, kind: KindSection,
		setDefault: func() { setDefaults(target) },
		decode:     func(d *decoder, n *yaml.Node, path string) { d.section(n, path, target) },
		element:    func() Section { return target },
	})
}

// pointerTo is the constraint that *T is a Section.
type pointerTo[T any] interface {
	*T
	Section
}

// Optional declares a section whose presence means something; *target is nil
// where the file has none.
func Optional[T any, P pointerTo[T]](f *Fields, target **T, key, doc string) {
	f.list = append(f.list, &field{
		key: key, doc: doc, kind: KindSection,
		setDefault: func() { *target = nil },
		decode: func(d *decoder, n *yaml.Node, path string) {
			v := new(T)
			d.section(n, path, P(v))
			*target = v
		},
		element: func() Section { return P(new(T)) },
	})
}

// ListOf declares a list of sections, each made by element.
func ListOf[T any, P pointerTo[T]](f *Fields, target *[]T, key, doc string, element func() P, rules ...Rule) {
	f.list = append(f.list, &field{
		key: key, doc: doc, kind: KindList, rules: rules,
		setDefault: func() { *target = nil },
		decode: func(d *decoder, n *yaml.Node, path string) {
			d.list(n, path, func(item *yaml.Node, itemPath string) {
				v := element()
				d.section(item, itemPath, v)
				*target = append(*target, *v)
			})
		},
		element: func() Section { return element() },
	})
}

// Choice is one of the keys of which a section must have exactly one.
type Choice struct {
	Key string
	Doc string
	New func() Section
}

// OneOf declares that exactly one of the choices' keys stands in the section. set
// gets the key and the decoded section behind it.
func (f *Fields) OneOf(what string, choices []Choice, set func(key string, s Section)) {
	fd := &field{doc: what, kind: KindOneOf, choices: choices, setDefault: func() {}}
	fd.decode = func(d *decoder, n *yaml.Node, path string) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			for _, c := range choices {
				if n.Content[i].Value != c.Key {
					continue
				}
				s := c.New()
				d.section(n.Content[i+1], join(path, c.Key), s)
				set(c.Key, s)
			}
		}
	}
	f.list = append(f.list, fd)
}

// declared returns the fields of a section, bound to it.
func declared(s Section) []*field {
	var f Fields
	s.Fields(&f)
	return f.list
}

// setDefaults puts a section's defaults in place, as for an empty section.
func setDefaults(s Section) {
	for _, fd := range declared(s) {
		fd.setDefault()
	}
}
