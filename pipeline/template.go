package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Placeholder is a class of things that a template may name in braces.
type Placeholder string

// The placeholders. Each but the last two is written as it reads: {table}.
const (
	PlaceTable     Placeholder = "table"     // table of a change, without its database
	PlaceDB        Placeholder = "db"        // database of a change
	PlaceStream    Placeholder = "stream"    // stream the record is in
	PlacePartition Placeholder = "partition" // number of its partition
	PlaceKey       Placeholder = "key"       // key of the record, see Template
	PlaceSource    Placeholder = "source"    // source that emitted it
	PlaceOp        Placeholder = "op"        // c, u, d, r or t
	PlaceSink      Placeholder = "sink"      // the sink's own name
	PlaceDate      Placeholder = "date"      // {yyyy-MM-dd}, {HH}: event time in UTC
	PlaceField     Placeholder = "field"     // {customer_id}, {row.source}: a field of the row
)

var metaPlaces = []Placeholder{PlaceTable, PlaceDB, PlaceStream, PlacePartition, PlaceKey, PlaceSource, PlaceOp, PlaceSink}

// Template is a text with placeholders, such as "order:{id}" or "shop-{table}-{yyyy.MM}".
//
// {table}, {db}, {stream}, {partition}, {key}, {source}, {op} and {sink} name the
// record. Letters yyyy MM dd HH mm ss with whatever stands between them are its event
// time in UTC. Anything else is a field of the row; {row.NAME} reaches a field whose
// name is one of the above or holds unusual characters. {{ and }} are braces.
//
// {key} is the value of a key of one column, and the values of a composite key joined
// by "_", with "_" and "\" in a value written "\_" and "\\".
//
// An update may change what a template gives: a sink that places a row by a template
// renders it on Before and on After and, where the two differ, deletes at the first
// before it writes at the second.
//
// A Template is immutable and safe for concurrent use.
type Template struct {
	text  string
	parts []templatePart
}

// templatePart is literal text, or a placeholder where place is set.
type templatePart struct {
	place Placeholder
	text  string // the literal, or the field's name, or the layout of the date
}

// ParseTemplate parses a template in which only the allowed placeholders may stand;
// all where none is given.
func ParseTemplate(text string, allowed ...Placeholder) (*Template, error) {
	t := &Template{text: text}
	var literal strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			literal.WriteByte(c)
			i += 2
		case c == '}':
			return nil, fmt.Errorf("column %d: a `}` without `{`; write `}}` for the character", i+1)
		case c == '{':
			n := strings.IndexAny(text[i+1:], "{}")
			if n < 0 || text[i+1+n] == '{' {
				return nil, fmt.Errorf("column %d: `{` is never closed; write `{{` for the character", i+1)
			}
			part, err := parsePlaceholder(text[i+1:i+1+n], allowed)
			if err != nil {
				return nil, fmt.Errorf("column %d: %w", i+1, err)
			}
			t.addLiteral(&literal)
			t.parts = append(t.parts, part)
			i += n + 2
		default:
			literal.WriteByte(c)
			i++
		}
	}
	t.addLiteral(&literal)
	return t, nil
}

func (t *Template) addLiteral(b *strings.Builder) {
	if b.Len() > 0 {
		t.parts = append(t.parts, templatePart{text: b.String()})
		b.Reset()
	}
}

// parsePlaceholder reads what stands between two braces.
func parsePlaceholder(name string, allowed []Placeholder) (templatePart, error) {
	p := templatePart{place: PlaceField, text: name}
	field, isRow := strings.CutPrefix(name, "row.")
	switch {
	case isRow:
		p.text = field
	case slices.Contains(metaPlaces, Placeholder(name)):
		p = templatePart{place: Placeholder(name)}
	default:
		layout, isDate, err := dateLayout(name)
		if err != nil {
			return p, err
		}
		if isDate {
			p = templatePart{place: PlaceDate, text: layout}
		} else if !plainName(name) {
			return p, fmt.Errorf("{%s} is neither a date of yyyy MM dd HH mm ss nor a plain field name; write {row.%s} if a field has this name", name, name)
		}
	}
	if p.place == PlaceField && p.text == "" {
		return p, errors.New("{} names nothing")
	}
	if len(allowed) > 0 && !slices.Contains(allowed, p.place) {
		return p, fmt.Errorf("{%s} can't stand here; what can: %s", name, placeList(allowed))
	}
	return p, nil
}

func placeList(places []Placeholder) string {
	names := make([]string, len(places))
	for i, p := range places {
		switch p {
		case PlaceDate:
			names[i] = "dates such as {yyyy-MM-dd}"
		case PlaceField:
			names[i] = "fields"
		default:
			names[i] = "{" + string(p) + "}"
		}
	}
	return strings.Join(names, ", ")
}

// plainName reports whether name is made of letters, digits, _, $, @ and dots and
// does not begin with a digit or dot.
func plainName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '$' || r == '@' || r > 127
		if !letter && (i == 0 || (r != '.' && (r < '0' || r > '9'))) {
			return false
		}
	}
	return name != ""
}

// dateGroups are the letters of a date and the same in Go's layout.
var dateGroups = []struct{ letters, layout string }{
	{"yyyy", "2006"}, {"MM", "01"}, {"dd", "02"}, {"HH", "15"}, {"mm", "04"}, {"ss", "05"},
}

// dateLayout translates a date of letters into Go's layout. What begins with the
// letters of a date and goes on with others (yyyy-MM-DD) is an error, because taking
// it for a field would fail only when the first record comes.
func dateLayout(name string) (layout string, ok bool, err error) {
	var b strings.Builder
	groups := 0
	rest := name
next:
	for rest != "" {
		for _, g := range dateGroups {
			if after, found := strings.CutPrefix(rest, g.letters); found {
				b.WriteString(g.layout)
				groups++
				rest = after
				continue next
			}
		}
		if c := rest[0]; !strings.ContainsRune("-./:_ T", rune(c)) {
			if groups > 0 && strings.HasPrefix(name, "yyyy") {
				return "", false, fmt.Errorf("{%s} looks like a date but %q is none of yyyy MM dd HH mm ss", name, rest)
			}
			return "", false, nil
		}
		b.WriteByte(rest[0])
		rest = rest[1:]
	}
	return b.String(), groups > 0, nil
}

// String returns the template as it was written.
func (t *Template) String() string { return t.text }

// Uses reports whether a placeholder of the given class stands in the template.
func (t *Template) Uses(place Placeholder) bool {
	return slices.ContainsFunc(t.parts, func(p templatePart) bool { return p.place == place })
}

// Render returns the text for a delivery, its fields taken from row, which is
// &d.Before or &d.After. sink is the value of {sink}. The error is a reason to reject
// the delivery: a field is missing, null or no scalar; the record has no key or table.
func (t *Template) Render(d *Delivery, row *Row, sink string) (string, error) {
	var buf [96]byte
	out := buf[:0]
	for i := range t.parts {
		p := &t.parts[i]
		if p.place == "" {
			out = append(out, p.text...)
			continue
		}
		if p.place == PlaceDate {
			out = time.UnixMicro(d.Time).UTC().AppendFormat(out, p.text)
			continue
		}
		s, err := p.value(d, row, sink)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t.text, err)
		}
		out = append(out, s...)
	}
	return string(out), nil
}

// value returns the text of a placeholder that is no date.
func (p *templatePart) value(d *Delivery, row *Row, sink string) (string, error) {
	switch p.place {
	case PlaceField:
		return p.field(row)
	case PlaceTable, PlaceDB:
		db, table := d.Names()
		if p.place == PlaceDB {
			table = db
		}
		if table == "" {
			return "", fmt.Errorf("{%s}: the record is no change of a table", p.place)
		}
		return table, nil
	case PlaceKey:
		return keyText(d.Key)
	case PlaceStream:
		return d.Stream, nil
	case PlacePartition:
		return strconv.Itoa(int(d.Partition)), nil
	case PlaceOp:
		return string(d.Op), nil
	case PlaceSink:
		return sink, nil
	case PlaceSource:
		if d.Source == "" {
			return "", errors.New("{source}: the record names no source")
		}
		return d.Source, nil
	}
	panic("pipeline: unknown placeholder " + string(p.place))
}

func (p *templatePart) field(row *Row) (string, error) {
	if row.Absent() {
		return "", fmt.Errorf("field %q: the record has no row here", p.text)
	}
	raw, ok, err := row.Field(p.text)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fmt.Errorf("field %q is missing", p.text)
	}
	s, err := scalarText(raw)
	if err != nil {
		return "", fmt.Errorf("field %q %w", p.text, err)
	}
	return s, nil
}
