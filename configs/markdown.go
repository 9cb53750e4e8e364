package configs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the tables of all fields: a heading for each section, in the
// order of the declarations, under the path by which problems name it. intro comes
// before the first.
func WriteMarkdown(w io.Writer, intro string, root Section) error {
	m := &markdown{}
	m.WriteString(strings.TrimRight(intro, "\n") + "\n")
	m.section("", "Top level", "", root)
	_, err := m.WriteTo(w)
	return err
}

// markdown is the document as far as it is written.
type markdown struct{ bytes.Buffer }

// section writes one table and then the sections below it.
func (m *markdown) section(path, title, doc string, s Section) {
	level := "##"
	if strings.ContainsAny(path, ".[") {
		level = "###"
	}
	fmt.Fprintf(m, "\n%s %s\n", level, title)
	if doc != "" {
		fmt.Fprintf(m, "\n%s\n", doc)
	}
	fields := declared(s)
	if len(fields) > 0 {
		m.WriteString("\n| key | kind | default | rule | meaning |\n|---|---|---|---|---|\n")
	}
	for _, fd := range fields {
		m.row(path, fd)
	}
	for _, fd := range fields {
		m.below(path, fd)
	}
}

func (m *markdown) row(path string, fd *field) {
	if fd.kind == KindOneOf {
		for _, c := range fd.choices {
			m.cells(link(c.Key, join(path, c.Key)), "section", "", "one "+fd.doc, c.Doc)
		}
		return
	}
	key, def := "`"+fd.key+"`", ""
	if fd.def != "" && !fd.required() {
		def = "`" + fd.def + "`"
	}
	switch fd.kind {
	case KindSection:
		key = link(fd.key, join(path, fd.key))
	case KindList:
		key = link(fd.key, join(path, fd.key)+"[]")
	}
	m.cells(key, string(fd.kind), def, fd.ruleTexts(), fd.doc)
}

func (m *markdown) cells(cells ...string) {
	for _, c := range cells {
		m.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(c) + " ")
	}
	m.WriteString("|\n")
}

// below writes the sections that a field holds.
func (m *markdown) below(path string, fd *field) {
	switch fd.kind {
	case KindSection:
		p := join(path, fd.key)
		m.section(p, "`"+p+"`", fd.doc, fd.element())
	case KindList:
		p := join(path, fd.key) + "[]"
		m.section(p, "`"+p+"`", fd.doc, fd.element())
	case KindOneOf:
		for _, c := range fd.choices {
			p := join(path, c.Key)
			m.section(p, "`"+p+"`", c.Doc, c.New())
		}
	}
}

// link points to the heading of a section, whose anchor is its path's letters.
func link(key, path string) string {
	anchor := strings.Map(func(r rune) rune {
		if strings.ContainsRune(".[]`", r) {
			return -1
		}
		return r
	}, strings.ToLower(path))
	return fmt.Sprintf("[`%s`](#%s)", key, anchor)
}

func (f *field) ruleTexts() string {
	var texts []string
	for _, r := range f.rules {
		if text := r.text(f.value); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}
