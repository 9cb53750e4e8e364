package mysql

import "strings"

// renaming is one part of a RENAME.
type renaming struct{ from, to tableName }

func (d *ddl) rename(c *cursor) {
	c.accept("IF", "EXISTS")
	var list []renaming
	for {
		from, ok := d.tableName(c)
		if !ok {
			break
		}
		if c.accept("WAIT") {
			c.i++
		}
		c.accept("NOWAIT")
		if !c.accept("TO") {
			break
		}
		to, ok := d.tableName(c)
		if !ok {
			break
		}
		list = append(list, renaming{from, to})
		if !c.accept(",") {
			break
		}
	}
	d.renamed(list)
}

// renamed moves definitions. A captured name that one table leaves and another takes
// in one statement has other rows from then on, unless the other is the copy that a tool
// for online changes of the schema has made: see ghosts. Else its rows have gone, or
// come from elsewhere.
func (d *ddl) renamed(list []renaming) {
	before := map[tableName]*table{}
	for _, m := range list {
		for _, n := range []tableName{m.from, m.to} {
			if _, seen := before[n]; !seen && d.reg.captured(n) {
				if t, there := d.reg.tables[n]; there {
					before[n] = t
				}
			}
		}
	}
	touched := map[tableName]bool{}
	origin := map[tableName]tableName{} // the name before the statement
	for _, m := range list {
		first, moved := origin[m.from]
		if !moved {
			first = m.from
		}
		delete(origin, m.from)
		origin[m.to] = first
		t, there := d.reg.tables[m.from]
		if !there && !d.reg.captured(m.to) {
			continue
		}
		d.reg.remove(m.from)
		touched[m.from], touched[m.to] = true, true
		if t == nil {
			if d.follows(m.to) {
				d.unknown(m.to, "RENAME of a table whose definition is not known")
			}
			continue
		}
		t = t.clone()
		t.DB, t.Name = m.to.db, m.to.table
		d.reg.set(m.to, t)
	}
	for n := range touched {
		if !d.reg.captured(n) {
			continue
		}
		old, was := before[n]
		now, is := d.reg.tables[n]
		if is && old != nil && now == nil {
			d.reg.former[n] = old.keyColumns()
		}
		switch {
		case was && !is:
			d.gone(n, "RENAME")
		case !was && is:
			d.reread(n, "RENAME")
		case was && is && old != nil && now != nil && !sameKey(old, now):
			d.rekeyed(n, now)
		case was && is && origin[n] != n && !ghostOf(n, origin[n]):
			d.replaced(d.h, n, "RENAME of "+origin[n].String())
		}
	}
}

// ghostOf reports whether a table has the name of the copy that a tool for online changes
// of the schema makes of n: gh-ost, pt-online-schema-change and spirit, lhm, Facebook's,
// Vitess. Such a copy has n's rows when it takes n's place.
func ghostOf(n, copied tableName) bool {
	name, ghost := strings.ToLower(n.table), strings.ToLower(copied.table)
	if n.db != copied.db {
		return false
	}
	if base, is := strings.CutSuffix(ghost, "_gho"); is && len([]rune(ghost)) == 64 && strings.HasPrefix("_"+name, base) {
		return true // a name that had to be cut
	}
	switch ghost {
	case "_" + name + "_gho", "lhmn_" + name, "__osc_new_" + name:
		return true
	}
	if strings.HasPrefix(ghost, "_vt_vrp_") || strings.HasPrefix(ghost, "_") && strings.HasSuffix(ghost, "_vrepl") {
		return true
	}
	// pt-online-schema-change puts more underscores in front where the name is taken.
	return strings.HasPrefix(ghost, "_") && strings.TrimLeft(ghost, "_") == strings.TrimLeft(name, "_")+"_new"
}
