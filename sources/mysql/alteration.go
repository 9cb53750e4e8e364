package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// alteration is one ALTER TABLE being applied to a copy of the definition.
//
// All parts of the statement speak of the columns that were there before it, whatever
// other parts rename or drop, and only AFTER speaks of the names to be. So the server
// first drops and redefines columns where they stand, then puts in the new and moved
// ones in the order in which they are written, then the keys; and so do we.
type alteration struct {
	*ddl
	t        *table
	name     tableName
	to       tableName // new name
	rowsLost string    // why rows changed without being logged

	columns []alteredColumn
	placed  []placement
	keys    []func() error
}

// alteredColumn is a column with its name before the statement (none of a new one) and
// its place in the key, counted from one (0 where it is not in the key).
type alteredColumn struct {
	column
	was string
	key int
}

// placement is a column that is to be put somewhere.
type placement struct {
	alteredColumn
	def columnDefinition
}

func newAlteration(d *ddl, old *table, n tableName) *alteration {
	a := &alteration{ddl: d, t: old.clone(), name: n}
	d.charset = old.Charset
	for _, c := range old.Columns {
		a.columns = append(a.columns, alteredColumn{column: c, was: c.Name})
	}
	for i, k := range old.Key {
		a.columns[k].key = i + 1
	}
	return a
}

// apply goes through the parts. An error says that a part was not understood.
func (a *alteration) apply(c *cursor) error {
	parts := splitCommas(c.tokens[min(c.i, len(c.tokens)):])
	for _, part := range parts {
		if err := a.convert(&cursor{tokens: part}); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := a.part(&cursor{tokens: part}); err != nil {
			return err
		}
	}
	for _, p := range a.placed {
		if err := a.place(p); err != nil {
			return err
		}
	}
	a.t.Columns, a.t.Key = nil, make([]int, len(a.t.Key))
	for i, c := range a.columns {
		a.t.Columns = append(a.t.Columns, c.column)
		if c.key > 0 {
			a.t.Key[c.key-1] = i
		}
	}
	for _, key := range a.keys {
		if err := key(); err != nil {
			return err
		}
	}
	for _, k := range a.t.Key {
		if a.t.KeyName != "PRIMARY" && !a.t.Columns[k].NotNull {
			return fmt.Errorf("the unique key %s may hold NULL now", a.t.KeyName)
		}
	}
	return nil
}

// find returns the place of the column that had the name before the statement.
func (a *alteration) find(name string) int {
	return slices.IndexFunc(a.columns, func(c alteredColumn) bool { return c.was != "" && strings.EqualFold(c.was, name) })
}

func (a *alteration) dropKey() {
	a.t.Key, a.t.KeyName = nil, ""
	for i := range a.columns {
		a.columns[i].key = 0
	}
	for i := range a.placed {
		a.placed[i].key = 0
	}
}

func (a *alteration) part(p *cursor) error {
	switch {
	case p.end():
		return nil
	case p.accept("ADD"):
		return a.add(p)
	case p.accept("DROP"):
		return a.drop(p)
	case p.accept("MODIFY"):
		p.accept("COLUMN")
		p.accept("IF", "EXISTS")
		name, ok := p.name()
		if !ok {
			return errors.New("MODIFY without a column")
		}
		return a.change(name, name, p)
	case p.accept("CHANGE"):
		p.accept("COLUMN")
		p.accept("IF", "EXISTS")
		from, ok1 := p.name()
		to, ok2 := p.name()
		if !ok1 || !ok2 {
			return errors.New("CHANGE without columns")
		}
		return a.change(from, to, p)
	case p.accept("RENAME"):
		return a.renamePart(p)
	}
	return a.partition(p)
}

// partition looks for what takes or brings rows without logging them. All else that
// an ALTER TABLE can say changes neither columns nor keys.
func (a *alteration) partition(p *cursor) error {
	for _, words := range [][]string{{"TRUNCATE", "PARTITION"}, {"EXCHANGE", "PARTITION"}, {"IMPORT", "TABLESPACE"}, {"IMPORT", "PARTITION"},
		{"DISCARD", "TABLESPACE"}, {"DISCARD", "PARTITION"}, {"CONVERT", "PARTITION"}, {"CONVERT", "TABLE"}} {
		if p.accept(words...) {
			a.rowsLost = "ALTER TABLE ... " + strings.Join(words, " ")
			return nil
		}
	}
	if !p.peek(0).is("PARTITION") && !p.peek(0).is("CONVERT") && !p.peek(0).is("ALTER") {
		a.tableCharset(p)
	}
	return nil
}

// convert applies CONVERT TO CHARACTER SET, which also makes columns longer that might
// not hold their characters in it.
func (a *alteration) convert(p *cursor) error {
	if !p.accept("CONVERT", "TO") {
		return nil
	}
	if !p.accept("CHARACTER", "SET") && !p.accept("CHAR", "SET") && !p.accept("CHARSET") {
		return errors.New("CONVERT TO something")
	}
	cs := canonicalCharset(charsetName(p))
	width := a.srv.maxLen[cs]
	if width == 0 || cs == "binary" {
		return fmt.Errorf("CONVERT TO CHARACTER SET %s", cs)
	}
	for i := range a.columns {
		c := &a.columns[i]
		if !hasCharset(c.Type) {
			continue
		}
		sizes := []string{"tinytext", "text", "mediumtext", "longtext"}
		if k := slices.Index(sizes, c.Type); k >= 0 && k < 3 && width > a.srv.maxLen[c.Charset] {
			c.Type = sizes[k+1]
		}
		c.Charset = cs
	}
	a.t.Charset, a.charset = cs, cs
	return nil
}

// tableCharset looks for the default character set among options of the table, of which
// several may stand in one part.
func (a *alteration) tableCharset(p *cursor) {
	for !p.end() {
		switch {
		case p.accept("CHARACTER", "SET"), p.accept("CHAR", "SET"), p.accept("CHARSET"):
			a.t.Charset = canonicalCharset(charsetName(p))
		case p.accept("COLLATE"):
			if cs := collationCharset(p); cs != "" {
				a.t.Charset = canonicalCharset(cs)
			}
		default:
			p.i++
		}
	}
}

func (a *alteration) renamePart(p *cursor) error {
	switch {
	case p.accept("COLUMN"):
		p.accept("IF", "EXISTS")
		from, ok := p.name()
		if !ok || !p.accept("TO") {
			return errors.New("RENAME COLUMN without names")
		}
		to, ok := p.name()
		i := a.find(from)
		if !ok || i < 0 {
			return fmt.Errorf("RENAME COLUMN of the unknown column %s", from)
		}
		a.columns[i].Name = to
		return nil
	case p.acceptAny("INDEX", "KEY"):
		from, _ := p.name()
		p.accept("TO")
		if to, ok := p.name(); ok && strings.EqualFold(from, a.t.KeyName) {
			a.t.KeyName = to
		}
		return nil
	}
	p.acceptAny("TO", "AS", "=")
	to, ok := a.tableName(p)
	if !ok {
		return errors.New("RENAME without a name")
	}
	a.to = to
	return nil
}
