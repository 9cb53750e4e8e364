package mysql

import (
	"errors"
	"fmt"
	"strings"
)

// columnDefinition is a column's definition in DDL.
type columnDefinition struct {
	column
	first   bool
	after   string
	primary bool
	unique  bool
}

// columnDefinition reads what stands behind a column's name.
func (d *ddl) columnDefinition(name string, p *cursor) (columnDefinition, error) {
	def := columnDefinition{}
	start := p.i
	col, err := parseColumnType(p, d.charset)
	if err != nil {
		return def, fmt.Errorf("column %s: %w", name, err)
	}
	if col.Type == "json" && d.srv.flavor == flavorMariaDB {
		col.Type, col.Charset = "longtext", "utf8mb4"
	}
	def.column = col
	def.Name = name
	if strings.EqualFold(p.tokens[start].text, "SERIAL") {
		def.unique = true
	}
	return def, def.attributes(p)
}

// attributes reads the rest of a column's definition for what concerns us.
func (c *columnDefinition) attributes(p *cursor) error {
	for !p.end() {
		switch {
		case p.accept("NOT", "NULL"):
			c.NotNull = true
		case p.accept("DEFAULT"):
			if _, ok := p.parens(); !ok {
				p.i++
			}
		case p.acceptAny("COMMENT", "COLUMN_FORMAT", "STORAGE"):
			p.i++
		case p.accept("PRIMARY", "KEY"), p.accept("PRIMARY"):
			c.primary, c.NotNull = true, true
		case p.accept("UNIQUE"):
			p.accept("KEY")
			c.unique = true
		case p.accept("KEY"):
			c.primary, c.NotNull = true, true
		case p.accept("REFERENCES"):
			if _, ok := p.name(); ok && p.accept(".") {
				p.name()
			}
		case p.accept("SET", "DEFAULT"), p.accept("SET", "NULL"): // what a foreign key does
		case p.accept("CHARACTER", "SET"), p.accept("CHARSET"):
			return errors.New("a character set away from the type")
		case p.accept("COLLATE"):
			if cs := collationCharset(p); cs != "" && hasCharset(c.Type) {
				c.Charset = canonicalCharset(cs)
			}
		case p.accept("FIRST"):
			c.first = true
		case p.accept("AFTER"):
			name, ok := p.name()
			if !ok {
				return errors.New("AFTER without a column")
			}
			c.after = name
		case p.accept("WITH", "SYSTEM"), p.accept("WITHOUT", "SYSTEM"), p.accept("COMPRESSED"):
			return errors.New("a kind of column that is not followed")
		case p.accept("AS"):
			c.Generated = true
			p.parens()
		case p.accept("CHECK"), p.accept("USING"):
			p.parens()
		default:
			if _, ok := p.parens(); !ok {
				p.i++
			}
		}
	}
	return nil
}

// createdTable returns the definition that a CREATE TABLE makes; the cursor is behind
// the name.
func (d *ddl) createdTable(n tableName, c *cursor) (*table, error) {
	if !d.sure {
		return nil, errors.New("the statement's text is not plain")
	}
	if c.accept("LIKE") {
		return d.createdLike(n, c)
	}
	body, ok := c.parens()
	if !ok {
		return nil, errors.New("CREATE TABLE without columns")
	}
	inner := cursor{tokens: body}
	if inner.accept("LIKE") {
		return d.createdLike(n, &inner)
	}
	t := &table{DB: n.db, Name: n.table}
	var err error
	if t.Charset, err = d.createdCharset(n, c); err != nil {
		return nil, err
	}
	if d.createdKind(c) {
		t.Refused = "it is system-versioned"
	}
	d.charset = t.Charset
	var uniques [][]string
	for _, part := range splitCommas(body) {
		p := &cursor{tokens: part}
		if unique, err := d.element(t, p); err != nil {
			return nil, err
		} else if unique != nil {
			uniques = append(uniques, unique)
		}
	}
	return t, t.keyFrom(uniques)
}

// keyFrom takes the first unique key without NULL where there is no primary key.
func (t *table) keyFrom(uniques [][]string) error {
	if t.KeyName != "" || len(uniques) == 0 {
		return nil
	}
	// Which of several the server lists first depends on their names.
	if len(uniques) > 1 {
		return errors.New("several unique keys and no primary key")
	}
	t.KeyName = uniques[0][0]
	t.setKey(uniques[0][1:])
	for _, k := range t.Key {
		if k < 0 || !t.Columns[k].NotNull {
			t.Key, t.KeyName = nil, ""
			return nil
		}
	}
	return nil
}

func (d *ddl) createdLike(n tableName, c *cursor) (*table, error) {
	from, ok := d.tableName(c)
	if !ok {
		return nil, errors.New("LIKE without a table")
	}
	t := d.reg.tables[from]
	if t == nil {
		return nil, fmt.Errorf("LIKE %s, whose definition is not known", from)
	}
	t = t.clone()
	t.DB, t.Name = n.db, n.table
	return t, nil
}

// createdCharset finds the table's default character set among the options behind
// its columns; else it is the database's.
func (d *ddl) createdCharset(n tableName, c *cursor) (string, error) {
	charset := ""
	for o := (cursor{tokens: c.tokens, i: c.i}); !o.end(); {
		switch {
		case o.accept("CHARACTER", "SET"), o.accept("CHARSET"):
			charset = canonicalCharset(charsetName(&o))
		case o.accept("COLLATE"):
			if cs := collationCharset(&o); cs != "" && charset == "" {
				charset = canonicalCharset(cs)
			}
		case o.accept("PARTITION"), o.peek(0).is("SELECT"), o.peek(0).is("AS"):
			o.i = len(o.tokens)
		default:
			o.i++
		}
	}
	if charset != "" {
		return charset, nil
	}
	if altered, err := d.databasesAltered(); err != nil {
		return "", err
	} else if altered {
		return "", errors.New("no character set, and that of a database was changed since")
	}
	err := d.srv.db.QueryRowContext(d.ctx, "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", n.db).Scan(&charset)
	if err != nil {
		return "", fmt.Errorf("no character set, and none of the database to be found")
	}
	return canonicalCharset(charset), nil
}

// databasesAltered reports whether the log has an ALTER DATABASE behind the reader. It
// matters where the log does not say the character sets of columns itself.
func (r *reader) databasesAltered() (bool, error) {
	if r.srv.flavor == flavorMySQL || r.at.before(r.unaltered) {
		return false, nil
	}
	end, err := r.srv.end(r.ctx)
	if err != nil {
		return false, err
	}
	altered, err := r.scanDDL(r.safe.place, r.done, end.place, r.at, func(_ statement, c *cursor) bool {
		return c.accept("ALTER", "DATABASE") || c.accept("ALTER", "SCHEMA")
	})
	if err == nil && !altered {
		r.unaltered = end.place
	}
	return altered, err
}

// createdKind reports whether the table keeps old versions of its rows.
func (d *ddl) createdKind(c *cursor) bool {
	for i := c.i; i+2 < len(c.tokens); i++ {
		if c.tokens[i].is("WITH") && c.tokens[i+1].is("SYSTEM") && c.tokens[i+2].is("VERSIONING") {
			return true
		}
	}
	return false
}

// element reads one element of a CREATE TABLE. For a unique key it returns the key's
// name and columns.
func (d *ddl) element(t *table, p *cursor) ([]string, error) {
	constraint := ""
	if p.accept("CONSTRAINT") {
		if !p.peek(0).is("PRIMARY") && !p.peek(0).is("UNIQUE") && !p.peek(0).is("CHECK") && !p.peek(0).is("FOREIGN") {
			constraint, _ = p.name()
		}
	}
	switch {
	case p.accept("PRIMARY", "KEY"):
		key, err := keyColumns(t, p)
		t.Key, t.KeyName = key, "PRIMARY"
		return nil, err
	case p.accept("UNIQUE"):
		p.acceptAny("INDEX", "KEY")
		return uniqueColumns(constraint, p)
	case p.peek(0).kind == tokenName: // a quoted name is a column's
	case p.acceptAny("INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"), p.accept("VECTOR", "INDEX"), p.accept("VECTOR", "KEY"):
		return nil, nil
	case p.accept("PERIOD", "FOR"):
		return nil, errors.New("PERIOD")
	}
	name, ok := p.name()
	if !ok {
		return nil, errors.New("an element of CREATE TABLE that is no column")
	}
	def, err := d.columnDefinition(name, p)
	if err != nil {
		return nil, err
	}
	t.Columns = append(t.Columns, def.column)
	if def.primary {
		t.Key, t.KeyName = []int{len(t.Columns) - 1}, "PRIMARY"
	}
	if def.unique {
		return []string{name, name}, nil
	}
	return nil, nil
}

// keyColumns reads the columns of a primary key: [name] [USING type] (a, b(10) DESC).
func keyColumns(t *table, p *cursor) ([]int, error) {
	names, err := indexColumns(p)
	if err != nil {
		return nil, err
	}
	key := make([]int, len(names))
	for i, name := range names {
		if key[i] = t.index(name); key[i] < 0 {
			return nil, fmt.Errorf("a key over the unknown column %s", name)
		}
		t.Columns[key[i]].NotNull = true
	}
	return key, nil
}

func uniqueColumns(constraint string, p *cursor) ([]string, error) {
	name := constraint
	if t := p.peek(0); !t.is("(") && !t.is("USING") {
		name, _ = p.name()
	}
	for _, t := range p.tokens[p.i:] {
		if t.kind == tokenWord && t.text[0] >= '0' && t.text[0] <= '9' {
			return nil, errors.New("a unique key over the beginning of a column")
		}
	}
	columns, err := indexColumns(p)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = columns[0]
	}
	return append([]string{name}, columns...), nil
}

func indexColumns(p *cursor) ([]string, error) {
	for !p.end() && !p.peek(0).is("(") {
		p.i++
	}
	list, ok := p.parens()
	if !ok {
		return nil, errors.New("a key without columns")
	}
	var names []string
	for _, part := range splitCommas(list) {
		c := cursor{tokens: part}
		name, ok := c.name()
		if !ok {
			return nil, errors.New("a key over an expression")
		}
		names = append(names, name)
	}
	return names, nil
}
