package mysql

// alter applies ALTER [IGNORE] TABLE name ... .
func (d *ddl) alter(c *cursor, ignore bool) {
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
	d.partitionMoves(n, old, c)
	if old == nil {
		if to, renames := d.renameTarget(c); renames && (there || d.reg.captured(to)) {
			d.renamed([]renaming{{n, to}})
		}
		return
	}
	a := newAlteration(d, old, n)
	err := a.apply(c)
	if ignore && (err != nil || len(a.keys) > 0) {
		a.rowsLost = "ALTER IGNORE TABLE" // of rows with one and the same unique key all but one go
	}
	if err != nil {
		d.unknown(n, err.Error())
	} else if !d.sure {
		d.unknown(n, "the statement's text is not plain")
	} else if !sameKey(old, a.t) {
		d.rekeyed(n, a.t)
	} else {
		d.reg.set(n, a.t)
	}
	if a.rowsLost != "" {
		d.replaced(d.h, n, a.rowsLost)
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
