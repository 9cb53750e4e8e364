package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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
	case p.accept("SYSTEM", "VERSIONING"), p.accept("PERIOD", "FOR"):
		return errors.New("SYSTEM VERSIONING")
	case p.accept("VECTOR", "INDEX"), p.accept("VECTOR", "KEY"):
		return nil
	case p.peek(0).kind == tokenWord && slices.Contains([]string{"INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PARTITION"}, strings.ToUpper(p.peek(0).text)):
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
	a.keys = append(a.keys, func() error {
		if len(a.t.Key) == 0 {
			return errors.New("a unique key for a table without a key")
		}
		return nil
	})
	return nil
}

func (a *alteration) addPrimary(p *cursor) error {
	a.keys = append(a.keys, func() error {
		key, err := keyColumns(a.t, p)
		a.t.Key, a.t.KeyName = key, "PRIMARY"
		return err
	})
	return nil
}

func (a *alteration) addColumn(p *cursor, ifNotExists bool) error {
	name, ok := p.name()
	if !ok {
		return errors.New("ADD without a column")
	}
	if ifNotExists && a.t.index(name) >= 0 {
		return nil
	}
	def, err := a.columnDefinition(name, p)
	a.placed = append(a.placed, placement{alteredColumn{column: def.column}, def})
	return err
}

// place puts a column in, at the end unless FIRST or AFTER said where.
func (a *alteration) place(p placement) error {
	named := func(name string) int {
		return slices.IndexFunc(a.columns, func(c alteredColumn) bool { return strings.EqualFold(c.Name, name) })
	}
	if named(p.Name) >= 0 {
		return fmt.Errorf("two columns %s", p.Name)
	}
	i := len(a.columns)
	switch {
	case p.def.first:
		i = 0
	case p.def.after != "":
		if i = named(p.def.after) + 1; i == 0 {
			return fmt.Errorf("AFTER the unknown column %s", p.def.after)
		}
	}
	a.columns = slices.Insert(a.columns, i, p.alteredColumn)
	if p.def.primary {
		a.keys = append(a.keys, func() error {
			a.t.Key, a.t.KeyName = []int{a.t.index(p.Name)}, "PRIMARY"
			return nil
		})
	}
	if p.def.unique {
		return a.addUnique()
	}
	return nil
}

func (a *alteration) change(from, to string, p *cursor) error {
	i := a.find(from)
	if i < 0 {
		return fmt.Errorf("a change of the unknown column %s", from)
	}
	def, err := a.columnDefinition(to, p)
	if err != nil {
		return err
	}
	c := alteredColumn{column: def.column, was: a.columns[i].was, key: a.columns[i].key}
	if c.key > 0 && a.t.KeyName == "PRIMARY" {
		c.NotNull = true
	}
	if def.first || def.after != "" || def.primary || def.unique {
		if !def.first && def.after == "" {
			return errors.New("a key with a change of its column")
		}
		a.columns = slices.Delete(a.columns, i, i+1)
		a.placed = append(a.placed, placement{c, def})
		return nil
	}
	a.columns[i] = c
	return nil
}

func (a *alteration) drop(p *cursor) error {
	switch {
	case p.accept("PRIMARY", "KEY"):
		a.dropKey()
		return nil
	case p.acceptAny("INDEX", "KEY", "CONSTRAINT"):
		p.accept("IF", "EXISTS")
		if name, ok := p.name(); ok && strings.EqualFold(name, a.t.KeyName) {
			a.dropKey()
		}
		return nil
	case p.accept("FOREIGN", "KEY"), p.accept("CHECK"):
		return nil
	case p.accept("PARTITION"):
		a.rowsLost = "ALTER TABLE ... DROP PARTITION"
		return nil
	case p.accept("SYSTEM", "VERSIONING"), p.accept("PERIOD", "FOR"):
		return errors.New("SYSTEM VERSIONING")
	}
	p.accept("COLUMN")
	ifExists := p.accept("IF", "EXISTS")
	name, ok := p.name()
	i := a.find(name)
	switch {
	case !ok || i < 0 && !ifExists:
		return fmt.Errorf("DROP of the unknown column %s", name)
	case i < 0:
		return nil
	case a.columns[i].key > 0:
		return fmt.Errorf("DROP of the key's column %s", name)
	}
	a.columns = slices.Delete(a.columns, i, i+1)
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
