package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// alter applies ALTER TABLE name ... .
func (d *ddl) alter(c *cursor) {
	c.accept("IF", "EXISTS")
	n, ok := d.tableName(c)
	if !ok {
		return
	}
	if c.accept("WAIT") {
		c.i++
	}
	c.accept("NOWAIT")
	d.refuseCascade(n, c)
	old, there := d.reg.tables[n]
	if old == nil {
		if to, renames := d.renameTarget(c); renames && (there || d.reg.captured(to)) {
			d.renamed([]renaming{{n, to}})
		}
		return
	}
	a := alteration{ddl: d, t: old.clone(), name: n}
	d.charset = old.Charset
	if err := a.apply(c); err != nil {
		d.unknown(n, err.Error())
	} else if !d.sure {
		d.unknown(n, "the statement's text is not plain")
	} else if !sameKey(old, a.t) {
		d.rekeyed(n, a.t)
	} else {
		d.reg.set(n, a.t)
	}
	if a.rowsLost != "" {
		d.replaced(n, a.rowsLost)
	}
	if a.to != (tableName{}) {
		d.renamed([]renaming{{n, a.to}})
	}
}

// renameTarget looks for RENAME [TO|AS|=] name among the parts of an ALTER TABLE.
func (d *ddl) renameTarget(c *cursor) (tableName, bool) {
	for _, part := range splitCommas(c.tokens[min(c.i, len(c.tokens)):]) {
		p := cursor{tokens: part}
		if p.accept("RENAME") && !p.peek(0).is("COLUMN") && !p.peek(0).is("INDEX") && !p.peek(0).is("KEY") {
			p.acceptAny("TO", "AS", "=")
			return d.tableName(&p)
		}
	}
	return tableName{}, false
}

// alteration is one ALTER TABLE being applied to a copy of the definition.
type alteration struct {
	*ddl
	t        *table
	name     tableName
	to       tableName // new name
	rowsLost string    // why rows changed without being logged
}

// apply goes through the parts. An error says that a part was not understood.
func (a *alteration) apply(c *cursor) error {
	for _, part := range splitCommas(c.tokens[min(c.i, len(c.tokens)):]) {
		p := &cursor{tokens: part}
		// Options of the table may follow each other without commas, before a part.
		if err := a.part(p); err != nil {
			return err
		}
	}
	return nil
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
	case p.accept("CONVERT", "TO"):
		return errors.New("CONVERT TO CHARACTER SET")
	case p.peek(0).is("DEFAULT") || p.peek(0).is("CHARACTER") || p.peek(0).is("CHARSET") || p.peek(0).is("COLLATE"):
		return a.tableCharset(p)
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
	if p.accept("ADD", "SYSTEM", "VERSIONING") {
		return errors.New("SYSTEM VERSIONING")
	}
	return nil
}

func (a *alteration) tableCharset(p *cursor) error {
	p.accept("DEFAULT")
	switch {
	case p.accept("CHARACTER", "SET"), p.accept("CHARSET"):
		a.t.Charset = canonicalCharset(charsetName(p))
	case p.accept("COLLATE"):
		if cs := collationCharset(p); cs != "" {
			a.t.Charset = canonicalCharset(cs)
		}
	}
	return nil
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
		i := a.t.index(from)
		if !ok || i < 0 {
			return fmt.Errorf("RENAME COLUMN of the unknown column %s", from)
		}
		a.t.Columns[i].Name = to
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

func (a *alteration) add(p *cursor) error {
	switch {
	case p.accept("PRIMARY", "KEY"):
		return a.addPrimary(p)
	case p.acceptAny("CONSTRAINT"):
		if !p.peek(0).is("PRIMARY") && !p.peek(0).is("UNIQUE") && !p.peek(0).is("CHECK") && !p.peek(0).is("FOREIGN") {
			p.name()
		}
		if p.accept("PRIMARY", "KEY") {
			return a.addPrimary(p)
		}
		if p.accept("UNIQUE") {
			return a.addUnique()
		}
		return nil
	case p.accept("UNIQUE"):
		return a.addUnique()
	case p.accept("SYSTEM", "VERSIONING"), p.accept("PERIOD"):
		return errors.New("SYSTEM VERSIONING")
	case p.peek(0).kind == tokenWord && slices.Contains([]string{"INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PARTITION", "VECTOR"}, strings.ToUpper(p.peek(0).text)):
		return nil
	}
	p.accept("COLUMN")
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	if list, ok := p.parens(); ok {
		for _, def := range splitCommas(list) {
			if err := a.addColumn(&cursor{tokens: def}, ifNotExists); err != nil {
				return err
			}
		}
		return nil
	}
	return a.addColumn(p, ifNotExists)
}

func (a *alteration) addUnique() error {
	if len(a.t.Key) == 0 {
		return errors.New("a unique key for a table without a key")
	}
	return nil
}

func (a *alteration) addPrimary(p *cursor) error {
	key, err := keyColumns(a.t, p)
	if err != nil {
		return err
	}
	a.t.Key, a.t.KeyName = key, "PRIMARY"
	return nil
}

func (a *alteration) addColumn(p *cursor, ifNotExists bool) error {
	name, ok := p.name()
	if !ok {
		return errors.New("ADD without a column")
	}
	if a.t.index(name) >= 0 {
		if ifNotExists {
			return nil
		}
		return fmt.Errorf("ADD of the column %s that is there", name)
	}
	def, err := a.columnDefinition(name, p)
	if err != nil {
		return err
	}
	return a.place(def, def.after)
}

// place inserts a column, at the end unless FIRST or AFTER said where.
func (a *alteration) place(def columnDefinition, after string) error {
	i := len(a.t.Columns)
	switch {
	case def.first:
		i = 0
	case after != "":
		if i = a.t.index(after) + 1; i == 0 {
			return fmt.Errorf("AFTER the unknown column %s", after)
		}
	}
	a.t.insert(i, def.column)
	if def.primary {
		a.t.Key, a.t.KeyName = []int{i}, "PRIMARY"
	}
	if def.unique && len(a.t.Key) == 0 {
		return errors.New("a unique key for a table without a key")
	}
	return nil
}

func (a *alteration) change(from, to string, p *cursor) error {
	i := a.t.index(from)
	if i < 0 {
		return fmt.Errorf("a change of the unknown column %s", from)
	}
	def, err := a.columnDefinition(to, p)
	if err != nil {
		return err
	}
	if slices.Contains(a.t.Key, i) && a.t.KeyName == "PRIMARY" {
		def.NotNull = true
	}
	if !def.first && def.after == "" {
		a.t.Columns[i] = def.column
		return nil
	}
	key := a.t.keyNames()
	a.t.Columns = slices.Delete(a.t.Columns, i, i+1)
	for k, name := range key {
		if strings.EqualFold(name, from) {
			key[k] = to
		}
	}
	a.t.Key = nil
	if err := a.place(columnDefinition{column: def.column, first: def.first}, def.after); err != nil {
		return err
	}
	a.t.setKey(key)
	return nil
}

func (a *alteration) drop(p *cursor) error {
	switch {
	case p.accept("PRIMARY", "KEY"):
		a.t.Key, a.t.KeyName = nil, ""
		return nil
	case p.acceptAny("INDEX", "KEY", "CONSTRAINT"):
		p.accept("IF", "EXISTS")
		if name, ok := p.name(); ok && strings.EqualFold(name, a.t.KeyName) {
			a.t.Key, a.t.KeyName = nil, ""
		}
		return nil
	case p.accept("FOREIGN", "KEY"), p.accept("CHECK"):
		return nil
	case p.accept("PARTITION"):
		a.rowsLost = "ALTER TABLE ... DROP PARTITION"
		return nil
	case p.accept("SYSTEM", "VERSIONING"), p.accept("PERIOD"):
		return errors.New("SYSTEM VERSIONING")
	}
	p.accept("COLUMN")
	ifExists := p.accept("IF", "EXISTS")
	name, ok := p.name()
	i := a.t.index(name)
	switch {
	case !ok || i < 0 && !ifExists:
		return fmt.Errorf("DROP of the unknown column %s", name)
	case i < 0:
		return nil
	case slices.Contains(a.t.Key, i):
		return fmt.Errorf("DROP of the key's column %s", name)
	}
	key := a.t.keyNames()
	a.t.Columns = slices.Delete(a.t.Columns, i, i+1)
	a.t.setKey(key)
	return nil
}

func (t *table) keyNames() []string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = t.Columns[k].Name
	}
	return names
}

func (t *table) setKey(names []string) {
	t.Key = make([]int, len(names))
	for i, name := range names {
		t.Key[i] = t.index(name)
	}
}

// insert puts a column at i and keeps the key.
func (t *table) insert(i int, c column) {
	key := t.keyNames()
	t.Columns = slices.Insert(t.Columns, i, c)
	t.setKey(key)
}
