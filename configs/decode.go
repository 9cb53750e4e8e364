package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFile bounds a pipeline file; what is larger is another file.
const maxFile = 8 << 20

// Load reads the file and decodes it into root. Its error is of type Problems
// where the file could be read but is not right.
func Load(path string, root Section) error { return load(path, root, nil) }

// LoadForSecretsOf is Load for commands that only look: of secrets it asks only for the
// values of those in the named section of the file, so that the environment and the files
// of the one who runs the pipeline are not needed for the others. Each of those that is
// given is set, to an empty text.
func LoadForSecretsOf(section, path string, root Section) error {
	return load(path, root, func(key string) bool { return strings.HasPrefix(key, section+".") })
}

func load(path string, root Section, wanted func(key string) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("reading configuration: %w", err)
	}
	if len(data) > maxFile {
		return fmt.Errorf("reading configuration: %s is larger than %s", path, showSize(maxFile))
	}
	return decode(&decoder{file: path, wanted: wanted}, data, root)
}

// Decode decodes data into root; name stands for the file in problems.
//
// Guarantee 18.
func Decode(name string, data []byte, root Section) error {
	return decode(&decoder{file: name}, data, root)
}

func decode(d *decoder, data []byte, root Section) error {
	n, err := document(data)
	if err != nil {
		return Problems{syntaxProblem(d.file, data, err)}
	}
	setDefaults(root)
	d.section(n, "", root)
	if len(d.problems) > 0 {
		return d.problems.sorted()
	}
	return nil
}

// document returns the root node of the only document in data.
func document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("yaml: line 1: the file is empty")
		}
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("yaml: line %d: a second document: put each pipeline in a file of its own", second.Line)
	}
	return resolve(doc.Content[0]), nil
}

// decoder walks the nodes and collects problems, so that all are reported at once.
type decoder struct {
	file     string
	wanted   func(key string) bool // which secrets are read, others are empty texts; nil: all
	problems Problems
}

func (d *decoder) problem(n *yaml.Node, path, message string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: n.Line, Column: n.Column, Path: path, Message: message})
}

// section decodes a mapping into s.
func (d *decoder) section(n *yaml.Node, path string, s Section) {
	n = resolve(n)
	before := len(d.problems)
	fields := declared(s)
	for _, fd := range fields {
		fd.setDefault()
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
	}
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "want a section of `key: value`, got a "+nodeKind(n))
		return
	}
	n = d.merged(n, path)
	known := byKey(fields)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			d.problem(k, path, "want a key, got a "+nodeKind(k))
			continue
		}
		if seen[k.Value] {
			d.problem(k, join(path, k.Value), "stands twice in this section")
			continue
		}
		seen[k.Value] = true
		fd := known[k.Value]
		if fd == nil {
			d.problem(k, join(path, k.Value), "unknown key"+Suggestion(k.Value, keys(fields)))
			continue
		}
		if fd.kind != KindOneOf {
			fd.decode(d, resolve(n.Content[i+1]), join(path, k.Value))
		}
	}
	for _, fd := range fields {
		d.checkPresence(n, path, fd, seen)
	}
	if c, ok := s.(Checker); ok && len(d.problems) == before {
		c.Check(&At{d: d, node: n, path: path})
	}
}

// checkPresence reports a missing field, and decodes a choice.
func (d *decoder) checkPresence(n *yaml.Node, path string, fd *field, seen map[string]bool) {
	if fd.kind == KindOneOf {
		var given []string
		for _, c := range fd.choices {
			if seen[c.Key] {
				given = append(given, c.Key)
			}
		}
		switch len(given) {
		case 1:
			fd.decode(d, n, path)
		case 0:
			d.problem(n, path, fmt.Sprintf("says no %s: want one of %s", fd.doc, strings.Join(choiceKeys(fd), ", ")))
		default:
			d.problem(n, path, fmt.Sprintf("says more than one %s: %s", fd.doc, strings.Join(given, ", ")))
		}
		return
	}
	if fd.required() && !seen[fd.key] {
		d.problem(n, path, fmt.Sprintf("the field %q is missing: %s", fd.key, strings.TrimSuffix(fd.doc, ".")))
	}
}

// list calls item for each element of a sequence.
func (d *decoder) list(n *yaml.Node, path string, item func(n *yaml.Node, path string)) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		d.problem(n, path, "want a list (lines that begin with `- `), got a "+nodeKind(n))
		return
	}
	for i, c := range n.Content {
		item(resolve(c), fmt.Sprintf("%s[%d]", path, i))
	}
}

// maxMerges bounds the sections that `<<` brings into one section. Each costs a walk,
// and anchors that name each other ten at a time would make it billions.
const maxMerges = 100

// merged returns the mapping with its `<<` keys replaced by what they name; keys of
// the mapping itself win, then those of what is named first.
func (d *decoder) merged(n *yaml.Node, path string) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
	queue := merges(out, n, false)
	for done := 0; len(queue) > 0; done++ {
		m := queue[0]
		queue = queue[1:]
		target := resolve(m)
		switch {
		case done == maxMerges:
			d.problem(m, path, fmt.Sprintf("`<<` brings in more than %d sections", maxMerges))
			return out
		case target.Kind == yaml.SequenceNode:
			queue = append(append([]*yaml.Node(nil), target.Content...), queue...)
		case target.Kind != yaml.MappingNode:
			d.problem(m, path, "`<<` wants the anchor of a section, or a list of them")
		default:
			queue = append(merges(out, target, true), queue...)
		}
	}
	return out
}

// merges appends a mapping's own keys to out, those that out has not where it only
// adds, and returns what its `<<` keys name.
func merges(out, n *yaml.Node, adds bool) []*yaml.Node {
	var named []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Tag == "!!merge":
			named = append(named, v)
		case !adds || lookup(out, k.Value) == nil:
			out.Content = append(out.Content, k, v)
		}
	}
	return named
}

// resolve follows aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// lookup returns the value at a key of a mapping, nil where there is none.
func lookup(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

func byKey(fields []*field) map[string]*field {
	m := map[string]*field{}
	for _, fd := range fields {
		if fd.kind != KindOneOf {
			m[fd.key] = fd
			continue
		}
		for _, c := range fd.choices {
			m[c.Key] = fd
		}
	}
	return m
}

func keys(fields []*field) []string {
	var ks []string
	for _, fd := range fields {
		if fd.kind == KindOneOf {
			ks = append(ks, choiceKeys(fd)...)
			continue
		}
		ks = append(ks, fd.key)
	}
	return ks
}

func choiceKeys(fd *field) []string {
	ks := make([]string, len(fd.choices))
	for i, c := range fd.choices {
		ks[i] = c.Key
	}
	return ks
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if key == "" {
		return path
	}
	return path + "." + key
}
