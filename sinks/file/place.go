package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/daybook-data/daybook/pipeline"
)

// A place turns a delivery into the path of its file. Values in the path can't leave the root: each segment of the
// template is rendered alone, and what can't stand in a file name is escaped.
type place struct {
	root  string // the folders before the first placeholder
	below string // the rest of the template
	// folders and stem are the segments of below; a static one has no template.
	folders []segment
	stem    segment
	ext     string // of the file, with what follows the stem

	// steady says that the path depends on nothing but what a whereabouts holds; the last one is then remembered.
	steady bool
	last   whereabouts
	name   string
}

// whereabouts is what a path can hold of a record, besides its key and fields.
type whereabouts struct {
	stream, table, source string
	partition             int32
	op                    pipeline.Op
	second                int64
}

type segment struct {
	literal  string
	template *pipeline.Template
}

// extension is what may end a file's name: .ndjson.zst, .log.
var extension = regexp.MustCompile(`(\.[A-Za-z0-9]+){1,3}$`)

func newPlace(path string) (*place, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, errors.New("is empty or holds a zero byte")
	}
	segments := split(path)
	last := len(segments) - 1
	if segments[last] == "" {
		return nil, errors.New("ends in a slash: it must name a file")
	}
	fixed := 0
	for fixed < last && !strings.ContainsAny(segments[fixed], "{}") {
		fixed++
	}
	p := &place{root: filepath.Clean(strings.Join(segments[:fixed], "/") + "/"), below: strings.Join(segments[fixed:], "/")}
	if fixed == 0 {
		p.root = "."
	}
	for _, text := range segments[fixed:last] {
		s, err := newSegment(text)
		if err != nil {
			return nil, err
		}
		p.folders = append(p.folders, s)
	}
	name := segments[last]
	p.ext = extension.FindString(name[strings.LastIndexByte(name, '}')+1:])
	var err error
	if p.stem, err = newSegment(strings.TrimSuffix(name, p.ext)); err != nil {
		return nil, err
	}
	p.steady = p.stem.steady()
	for i := range p.folders {
		p.steady = p.steady && p.folders[i].steady()
	}
	return p, nil
}

func (s *segment) steady() bool {
	return s.template == nil || !s.template.Uses(pipeline.PlaceField) && !s.template.Uses(pipeline.PlaceKey)
}

// split cuts a template at its slashes. {yyyy/MM/dd} means {yyyy}/{MM}/{dd}.
func split(path string) []string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case (c == '{' || c == '}') && i+1 < len(path) && path[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '{':
			inside = true
		case c == '}':
			inside = false
		case c == '/' && inside:
			b.WriteString("}/{")
			continue
		}
		b.WriteByte(path[i])
	}
	return strings.Split(b.String(), "/")
}

func newSegment(text string) (segment, error) {
	t, err := pipeline.ParseTemplate(text)
	if err != nil {
		return segment{}, err
	}
	if strings.ContainsAny(strings.NewReplacer("{{", "", "}}", "").Replace(text), "{}") {
		return segment{template: t}, nil
	}
	if text == "" || text == "." || text == ".." {
		return segment{}, fmt.Errorf("holds the folder %q behind a placeholder", text)
	}
	literal := strings.NewReplacer("{{", "{", "}}", "}").Replace(text)
	return segment{literal: escape(literal, maxSegment)}, nil
}

const (
	maxSegment = 200  // bytes of a folder's name or a file's stem; file systems take 255
	maxPath    = 3500 // bytes of a path; Linux takes 4,096
)

// of returns the folder (below the root) and the stem of the delivery's file.
func (p *place) of(d *pipeline.Delivery, sink string) (string, error) {
	if !p.steady {
		return p.render(d, sink)
	}
	at := whereabouts{d.Stream, d.Table, d.Source, d.Partition, d.Op, (d.Time - (d.Time%second+second)%second) / second}
	if at == p.last && p.name != "" {
		return p.name, nil
	}
	name, err := p.render(d, sink)
	if err == nil {
		p.last, p.name = at, name
	}
	return name, err
}

const second = 1_000_000 // µs

func (p *place) render(d *pipeline.Delivery, sink string) (string, error) {
	row := &d.After
	if row.Absent() {
		row = &d.Before
	}
	var b strings.Builder
	for i := range p.folders {
		name, err := p.folders[i].render(d, row, sink)
		if err != nil {
			return "", err
		}
		b.WriteString(name)
		b.WriteByte('/')
	}
	name, err := p.stem.render(d, row, sink)
	if err != nil {
		return "", err
	}
	b.WriteString(name)
	if n := len(p.root) + b.Len(); n > maxPath {
		return "", fmt.Errorf("the path is too long (%d bytes)", n)
	}
	return b.String(), nil
}

func (s *segment) render(d *pipeline.Delivery, row *pipeline.Row, sink string) (string, error) {
	if s.template == nil {
		return s.literal, nil
	}
	text, err := s.template.Render(d, row, sink)
	if err != nil {
		return "", err
	}
	return escape(text, maxSegment), nil
}

// path returns the path of a file below the root.
func (p *place) path(name string, number uint64) string {
	return fmt.Sprintf("%s-%06d%s", name, number, p.ext)
}

// escape makes any text one name that is neither hidden nor special, different for different texts. Bytes that can't
// stand in a name become %XX, as do % and ~; an empty text becomes a lone %; what is too long is cut and ends in ~ and
// a hash of all of it.
func escape(text string, limit int) string {
	if text == "" {
		return "%"
	}
	if plainName(text) && len(text) <= limit {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r < ' ' || r == 0x7f || strings.ContainsRune(`/\%~`, r) || r == utf8.RuneError && n == 1 || r == '.' && i == 0 {
			for ; n > 0; n-- {
				fmt.Fprintf(&b, "%%%02X", text[i])
				i++
			}
			continue
		}
		b.WriteString(text[i : i+n])
		i += n
	}
	if b.Len() <= limit {
		return b.String()
	}
	sum := sha256.Sum256([]byte(text))
	head := b.String()[:limit-1-2*16]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + "~" + hex.EncodeToString(sum[:16])
}

// plainName spares most names the work.
func plainName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
		if !letter {
			return false
		}
	}
	return true
}
