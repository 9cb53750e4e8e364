package mysql

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Following DDL: only statements that touch captured tables, or may come to, are
// looked at; all others pass whatever they say. Of those that matter, what can't be
// understood makes the table's definition unknown, never wrong: it is then settled
// when the first rows of the table come (resolve.go).

// ddl applies a statement to the registry and emits what it does to rows.
func (r *reader) ddl(h *replication.EventHeader, s statement, c *cursor, complete bool) error {
	d := ddl{reader: r, h: h, s: s, sure: complete && s.utf8}
	switch {
	case c.accept("CREATE"):
		return d.create(c)
	case c.accept("ALTER"):
		c.acceptAny("ONLINE")
		c.acceptAny("IGNORE")
		if c.accept("TABLE") {
			return d.alter(c)
		}
	case c.accept("DROP", "TABLE"), c.accept("DROP", "TABLES"):
		return d.drop(c)
	case c.accept("DROP", "DATABASE"), c.accept("DROP", "SCHEMA"):
		return d.dropDatabase(c)
	case c.accept("DROP", "INDEX"):
		return d.dropIndex(c)
	case c.accept("RENAME", "TABLE"), c.accept("RENAME", "TABLES"):
		return d.rename(c)
	case c.accept("TRUNCATE"):
		c.accept("TABLE")
		if n, ok := d.tableName(c); ok && r.reg.captured(n) {
			return r.emptied(h, n, "TRUNCATE")
		}
	}
	return nil
}

// ddl is one statement being applied.
type ddl struct {
	*reader
	h    *replication.EventHeader
	s    statement
	sure bool // the text could be read as a whole

	charset string // for columns that declare none
}

// refuseCascade stops at a statement that gives a captured table a foreign key which
// changes rows below the log.
func (d *ddl) refuseCascade(n tableName, c *cursor) error {
	if !d.srv.hidesCascades() || d.cfg.Cascades == cascadesIgnore || !d.reg.captured(n) {
		return nil
	}
	for i := range c.tokens[:max(0, len(c.tokens)-2)] {
		t := cursor{tokens: c.tokens, i: i}
		if t.accept("ON") && t.acceptAny("DELETE", "UPDATE") && t.acceptAny("CASCADE", "SET") {
			return unseenCascade(fmt.Sprintf("%s at %s", n, d.at))
		}
	}
	return nil
}

// tableName reads [database.]table.
func (d *ddl) tableName(c *cursor) (tableName, bool) {
	first, ok := c.name()
	if !ok {
		return tableName{}, false
	}
	db := d.s.db
	if c.accept(".") {
		db = first
		if first, ok = c.name(); !ok {
			return tableName{}, false
		}
	}
	return d.reg.id(db, first), true
}

// follows reports whether a table's definition is worth keeping: it is captured, or
// lives beside captured tables and might take the name of one.
func (d *ddl) follows(n tableName) bool {
	if d.reg.captured(n) {
		return true
	}
	return d.reg.hasDatabase(n.db) && len(d.reg.tables) < maxFollowed
}

// maxFollowed bounds the definitions that are kept beside those of captured tables.
const maxFollowed = 10_000

// unknown gives up a definition until rows of the table come.
func (d *ddl) unknown(n tableName, why string) {
	if d.reg.captured(n) {
		d.log.Warn("a statement could not be followed; the table's definition will be looked up when rows of it come",
			slog.String("table", n.String()), slog.String("why", why), slog.String("at", d.at.String()))
	}
	d.reg.set(n, nil)
}

func (d *ddl) create(c *cursor) error {
	replace := c.accept("OR", "REPLACE")
	if c.accept("TEMPORARY") {
		return nil
	}
	if c.accept("UNIQUE") {
		return d.createUnique(c)
	}
	if !c.accept("TABLE") {
		return nil
	}
	ifNotExists := c.accept("IF", "NOT", "EXISTS")
	n, ok := d.tableName(c)
	if !ok || !d.follows(n) {
		return nil
	}
	_, there := d.reg.tables[n]
	if there && ifNotExists && !replace {
		return nil
	}
	if err := d.refuseCascade(n, c); err != nil {
		return err
	}
	if there && replace && d.reg.captured(n) {
		if err := d.emptied(d.h, n, "CREATE OR REPLACE"); err != nil {
			return err
		}
	}
	t, err := d.createdTable(n, c)
	if err != nil {
		d.unknown(n, err.Error())
	} else {
		d.reg.set(n, t)
	}
	if d.snap != nil {
		d.snap.forget(n) // it is empty: all its rows will be in the log
	}
	return nil
}

// createUnique: a unique index may become what identifies rows.
func (d *ddl) createUnique(c *cursor) error {
	for !c.end() && !c.accept("ON") {
		c.i++
	}
	n, ok := d.tableName(c)
	if !ok {
		return nil
	}
	if t := d.reg.tables[n]; t != nil && len(t.Key) == 0 {
		d.unknown(n, "CREATE UNIQUE INDEX on a table without a key")
	}
	return nil
}

func (d *ddl) dropIndex(c *cursor) error {
	c.accept("IF", "EXISTS")
	index, _ := c.name()
	if !c.accept("ON") {
		return nil
	}
	n, ok := d.tableName(c)
	if !ok {
		return nil
	}
	if t := d.reg.tables[n]; t != nil && strings.EqualFold(t.KeyName, index) {
		return d.rekeyed(n, nil)
	}
	return nil
}

func (d *ddl) drop(c *cursor) error {
	c.accept("IF", "EXISTS")
	for {
		n, ok := d.tableName(c)
		if !ok {
			return nil
		}
		if err := d.dropped(n); err != nil {
			return err
		}
		if !c.accept(",") {
			return nil
		}
	}
}

func (d *ddl) dropped(n tableName) error {
	_, there := d.reg.tables[n]
	if there && d.reg.captured(n) {
		if err := d.emptied(d.h, n, "DROP"); err != nil {
			return err
		}
	}
	if there {
		d.reg.remove(n)
	}
	if d.snap != nil {
		d.snap.forget(n)
	}
	return nil
}

func (d *ddl) dropDatabase(c *cursor) error {
	c.accept("IF", "EXISTS")
	db, ok := c.name()
	if !ok {
		return nil
	}
	db = d.reg.id(db, "").db
	for n := range d.reg.tables {
		if n.db == db {
			if err := d.dropped(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// renaming is one part of a RENAME.
type renaming struct{ from, to tableName }

func (d *ddl) rename(c *cursor) error {
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
	return d.renamed(list)
}

// renamed moves definitions. A captured name that one table leaves and another takes
// in one statement is a change of the table's definition (that is how gh-ost and
// pt-online-schema-change end); else its rows have gone, or come from elsewhere.
func (d *ddl) renamed(list []renaming) error {
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
	for _, m := range list {
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
		switch {
		case was && !is:
			if err := d.emptied(d.h, n, "RENAME"); err != nil {
				return err
			}
			if d.snap != nil {
				d.snap.forget(n)
			}
		case !was && is:
			if err := d.reread(n, "RENAME"); err != nil {
				return err
			}
		case was && is && old != nil && now != nil && !sameKey(old, now):
			if err := d.rekeyed(n, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameKey(a, b *table) bool {
	if len(a.Key) != len(b.Key) {
		return false
	}
	for i := range a.Key {
		if !strings.EqualFold(a.Columns[a.Key[i]].Name, b.Columns[b.Key[i]].Name) {
			return false
		}
	}
	return true
}

// rekeyed handles a new key: what the sinks hold under the old keys is void. t is the
// new definition, nil where it is not known.
func (d *ddl) rekeyed(n tableName, t *table) error {
	if t == nil {
		d.unknown(n, "the key has changed")
	} else {
		d.reg.set(n, t)
	}
	if !d.reg.captured(n) {
		return nil
	}
	return d.replaced(n, "a change of the key")
}

// replaced handles statements that change rows without logging them: the table is
// emptied at the sinks and read anew.
func (d *ddl) replaced(n tableName, why string) error {
	if err := d.emptied(d.h, n, why); err != nil || d.cfg.Truncate != truncatePropagate {
		return err
	}
	return d.reread(n, why)
}

// reread has the snapshot read a table whose rows are not all in the log.
func (d *ddl) reread(n tableName, why string) error {
	if d.cfg.Start != startSnapshot {
		d.log.Warn("rows that were not logged are left out, for the source has `start: latest`",
			slog.String("table", n.String()), slog.String("why", why))
		return nil
	}
	d.log.Info("the table will be read by a snapshot", slog.String("table", n.String()), slog.String("why", why))
	d.reader.queue(n)
	return nil
}

// emptied applies the policy for tables whose rows vanish without being logged.
func (r *reader) emptied(h *replication.EventHeader, n tableName, why string) error {
	if r.snap != nil {
		r.snap.emptied(n)
	}
	switch r.cfg.Truncate {
	case truncateIgnore:
		r.see.truncates.Add(1)
		return nil
	case truncateStop:
		return &pipeline.StopError{Code: "table-emptied", Where: fmt.Sprintf("%s at %s", n, r.at),
			Err: errors.New("its rows went by " + why + ", and the source has `truncate: stop`"),
			Fix: "set `truncate: propagate` or `truncate: ignore`"}
	}
	r.see.truncates.Add(1)
	r.emitTruncate(h, n)
	return nil
}
