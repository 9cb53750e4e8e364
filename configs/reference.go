package configs

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// WriteReference writes a file that names every field: what must be given, with the
// example for its path (such as sources[].stream, a YAML value), and, behind a # and
// with its default, what may be. Of a list there is one element for each choice that
// its elements have. The file is valid as it stands.
//
// CHOICE in an example stands for the key of the choice, as elements need names of
// their own.
//
// It is an error if a required field has no example, if an example names no field, or
// if a default breaks its own field's rules.
func WriteReference(w io.Writer, intro string, root Section, examples map[string]string) error {
	r := &reference{examples: examples, used: map[string]bool{}}
	for _, line := range strings.Split(strings.TrimRight(intro, "\n"), "\n") {
		r.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	r.section("", "", root, "")
	for path := range examples {
		if !r.used[path] {
			r.fail(path, "is an example of no field")
		}
	}
	if len(r.errs) > 0 {
		return fmt.Errorf("writing reference: %s", strings.Join(r.errs, "; "))
	}
	_, err := r.WriteTo(w)
	return err
}

// reference is the file as far as it is written.
type reference struct {
	bytes.Buffer
	examples map[string]string
	used     map[string]bool
	errs     []string
	choice   string // of the element at hand
}

func (r *reference) fail(path, why string) { r.errs = append(r.errs, path+" "+why) }

// section writes the fields of a section at the given indent. Of a choice only the
// named one is written.
func (r *reference) section(indent, path string, s Section, choice string) {
	for _, fd := range declared(s) {
		switch fd.kind {
		case KindOneOf:
			for _, c := range fd.choices {
				if c.Key == choice {
					r.comment(indent, c.Doc, "")
					fmt.Fprintf(r, "%s%s:\n", indent, c.Key)
					r.section(indent+"  ", join(path, c.Key), c.New(), "")
				}
			}
		case KindSection:
			r.comment(indent, fd.doc, "")
			r.key(indent, join(path, fd.key), fd)
			r.section(indent+"  ", join(path, fd.key), fd.element(), "")
		case KindList:
			r.list(indent, join(path, fd.key), fd)
		default:
			r.plain(indent, path, fd)
		}
	}
}

// key opens a section: with a # where all in it has a default and no example, since
// to name it may mean something.
func (r *reference) key(indent, path string, fd *field) {
	if r.hasExample(path) {
		fmt.Fprintf(r, "%s%s:\n", indent, fd.key)
		return
	}
	fmt.Fprintf(r, "%s#%s:\n", indent, fd.key)
}

func (r *reference) hasExample(path string) bool {
	for p := range r.examples {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// list writes one element for each choice, behind a # where none of them has an example.
func (r *reference) list(indent, path string, fd *field) {
	r.comment(indent, fd.doc, "")
	off := "#" // without an example an element would be empty, which is against its rules
	if r.hasExample(path + "[]") {
		off = ""
	}
	fmt.Fprintf(r, "%s%s%s:\n", indent, off, fd.key)
	choices := []string{""}
	for _, sub := range declared(fd.element()) {
		if sub.kind == KindOneOf {
			choices = choiceKeys(sub)
		}
	}
	for _, c := range choices {
		at := r.Len()
		r.choice = c
		r.section(indent+"    ", path+"[]", fd.element(), c)
		text := string(r.Bytes()[at:])
		r.Truncate(at)
		// The dash of the element goes where its first key is, behind the comments.
		key := off + declared(fd.element())[0].key
		dash := strings.Replace("  - "+key, "- #", "#- ", 1)
		r.WriteString(strings.Replace(text, "\n"+indent+"    "+key, "\n"+indent+dash, 1))
	}
}

// plain writes a field that is no section.
func (r *reference) plain(indent, path string, fd *field) {
	p := join(path, fd.key)
	r.comment(indent, fd.doc, fd.ruleTexts())
	if example, ok := r.examples[p]; ok {
		r.used[p] = true
		example = strings.ReplaceAll(example, "CHOICE", r.choice)
		r.check(p, fd, example)
		fmt.Fprintf(r, "%s%s: %s\n", indent, fd.key, example)
		return
	}
	if fd.required() {
		r.fail(p, "is required and has no example")
		return
	}
	def := fd.def
	switch {
	case fd.kind == KindSecret:
		def = "{env: NAME}"
	case fd.kind == KindTime && def == "":
		def = "2026-09-01T00:00:00Z"
	case fd.kind == KindStrings && def == "":
		def = "[]"
	case def == "":
		def = `""`
	default:
		r.check(p, fd, def)
	}
	fmt.Fprintf(r, "%s#%s: %s\n", indent, fd.key, def)
}

// check decodes a value as if it stood in a file.
func (r *reference) check(path string, fd *field, value string) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil || len(doc.Content) != 1 {
		r.fail(path, fmt.Sprintf("has a value that is no YAML: %q", value))
		return
	}
	d := &decoder{}
	fd.decode(d, doc.Content[0], path)
	for _, p := range d.problems {
		r.fail(path, fmt.Sprintf("= %s is against its own rules: %s", value, p.Message))
	}
}

// comment writes what a field is for, in lines of a readable length.
func (r *reference) comment(indent, doc, rules string) {
	text := doc
	if rules != "" {
		text += " [" + rules + "]"
	}
	r.WriteString("\n")
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+len(line)+len(word) > 98 {
			fmt.Fprintf(r, "%s# %s\n", indent, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintf(r, "%s# %s\n", indent, line)
}
