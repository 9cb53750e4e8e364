package mysql

// partitionMoves handles the parts of ALTER TABLE n that bring rows into another table,
// or take them out of it, without logging them. What happens to n itself is seen to in
// alteration.partition.
func (d *ddl) partitionMoves(n tableName, t *table, c *cursor) {
	for _, part := range splitCommas(c.tokens[min(c.i, len(c.tokens)):]) {
		p := &cursor{tokens: part}
		switch {
		case p.accept("EXCHANGE", "PARTITION"):
			p.name()
			if other, ok := d.named(p, "WITH", "TABLE"); ok {
				d.replaced(d.h, other, "EXCHANGE PARTITION")
			}
		case p.accept("CONVERT", "PARTITION"):
			p.name()
			if other, ok := d.named(p, "TO", "TABLE"); ok {
				d.detached(t, other)
			}
		case p.accept("CONVERT", "TABLE"):
			if other, ok := d.tableName(p); ok {
				d.dropped(other)
			}
		}
	}
}

// named reads a table's name behind the given words.
func (d *ddl) named(p *cursor, words ...string) (tableName, bool) {
	if !p.accept(words...) {
		return tableName{}, false
	}
	return d.tableName(p)
}

// detached handles a partition of t (nil where it is not known) that became a table.
func (d *ddl) detached(t *table, n tableName) {
	if !d.follows(n) {
		return
	}
	if t == nil {
		d.unknown(n, "it was a partition of a table whose definition is not known")
	} else {
		t = t.clone()
		t.DB, t.Name = n.db, n.table
		d.reg.set(n, t)
	}
	if d.reg.captured(n) {
		d.reread(n, "CONVERT PARTITION TO TABLE")
	}
}
