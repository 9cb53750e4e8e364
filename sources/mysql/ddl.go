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
func (r *reader) ddl(h *replication.EventHeader, s statement, c *cursor, complete bool) {
	d := ddl{reader: r, h: h, s: s, sure: complete && s.utf8}
	switch {
	case c.accept("CREATE"):
		d.create(c)
	case c.accept("ALTER"):
		c.accept("ONLINE")
		ignore := c.accept("IGNORE")
		if c.accept("TABLE") {
			d.alter(c, ignore)
		}
	case c.accept("DROP", "TABLE"), c.accept("DROP", "TABLES"):
		d.drop(c)
	case c.accept("DROP", "DATABASE"), c.accept("DROP", "SCHEMA"):
		d.dropDatabase(c)
	case c.accept("DROP", "INDEX"):
		d.dropIndex(c)
	case c.accept("RENAME", "TABLE"), c.accept("RENAME", "TABLES"):
		d.rename(c)
	case c.accept("TRUNCATE"):
		c.accept("TABLE")
		if n, ok := d.tableName(c); ok && r.reg.captured(n) {
			r.emptied(h, n, "TRUNCATE")
		}
	}
}

// ddl is one statement being applied.
type ddl struct {
	*reader
	h    *replication.EventHeader
	s    statement
	sure bool // the text could be read as a whole

	charset string // for columns that declare none
}

// refuseCascade parks a captured table whose statement gives it a foreign key which
// changes rows below the log.
func (d *ddl) refuseCascade(n tableName, c *cursor) {
	if !d.srv.hidesCascades() || d.cfg.Cascades == cascadesIgnore || !d.reg.captured(n) {
		return
	}
	for i := range c.tokens[:max(0, len(c.tokens)-2)] {
		t := cursor{tokens: c.tokens, i: i}
		if t.accept("ON") && t.acceptAny("DELETE", "UPDATE") && t.acceptAny("CASCADE", "SET") {
			d.park(n, unseenCascade(fmt.Sprintf("%s at %s", n, d.at)))
			return
		}
	}
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

func (d *ddl) create(c *cursor) {
	replace := c.accept("OR", "REPLACE")
	if c.accept("TEMPORARY") {
		return
	}
	if c.accept("UNIQUE") {
		d.createUnique(c)
		return
	}
	if !c.accept("TABLE") {
		return
	}
	ifNotExists := c.accept("IF", "NOT", "EXISTS")
	n, ok := d.tableName(c)
	if !ok || !d.follows(n) {
		return
	}
	_, there := d.reg.tables[n]
	if there && ifNotExists && !replace {
		return
	}
	if there && replace && d.reg.captured(n) {
		d.gone(n, "CREATE OR REPLACE")
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
	d.refuseCascade(n, c)
}

// createUnique: a unique index may become what identifies rows.
func (d *ddl) createUnique(c *cursor) {
	for !c.end() && !c.accept("ON") {
		c.i++
	}
	n, ok := d.tableName(c)
	if !ok {
		return
	}
	if t := d.reg.tables[n]; t != nil && len(t.Key) == 0 {
		d.unknown(n, "CREATE UNIQUE INDEX on a table without a key")
	}
}

func (d *ddl) dropIndex(c *cursor) {
	c.accept("IF", "EXISTS")
	index, _ := c.name()
	if !c.accept("ON") {
		return
	}
	n, ok := d.tableName(c)
	if !ok {
		return
	}
	if t := d.reg.tables[n]; t != nil && strings.EqualFold(t.KeyName, index) {
		d.rekeyed(n, nil)
	}
}

func (d *ddl) drop(c *cursor) {
	c.accept("IF", "EXISTS")
	for {
		n, ok := d.tableName(c)
		if !ok {
			return
		}
		d.dropped(n)
		if !c.accept(",") {
			return
		}
	}
}

func (d *ddl) dropped(n tableName) {
	if _, there := d.reg.tables[n]; there {
		if d.reg.captured(n) {
			d.gone(n, "DROP")
		}
		d.reg.remove(n)
	}
	if d.snap != nil {
		d.snap.forget(n)
	}
}

// gone handles a captured table that is no more.
func (d *ddl) gone(n tableName, why string) {
	d.emptied(d.h, n, why)
	if d.snap != nil {
		d.snap.forget(n)
	}
	if d.parked[n].Code != codeEmptied {
		d.unlist(n, why)
	}
}

func (d *ddl) dropDatabase(c *cursor) {
	c.accept("IF", "EXISTS")
	db, ok := c.name()
	if !ok {
		return
	}
	db = d.reg.id(db, "").db
	for n := range d.reg.tables {
		if n.db == db {
			d.dropped(n)
		}
	}
}

// rekeyed handles a new key: what the sinks hold under the old keys is void. t is the
// new definition, nil where it is not known.
func (d *ddl) rekeyed(n tableName, t *table) {
	if t == nil {
		d.unknown(n, "the key has changed")
	} else {
		d.reg.set(n, t)
	}
	d.replaced(d.h, n, "a change of the key")
}

// replaced handles statements that change rows without logging them: the table is
// emptied at the sinks and read anew.
func (r *reader) replaced(h *replication.EventHeader, n tableName, why string) {
	if _, parked := r.parked[n]; parked || !r.reg.captured(n) {
		return // a parked table is read anew when it comes back
	}
	r.emptied(h, n, why)
	if r.cfg.Truncate != truncateStop {
		r.reread(n, why)
	}
}

// reread has the snapshot read a table whose rows are not all in the log.
func (r *reader) reread(n tableName, why string) {
	if _, parked := r.parked[n]; parked {
		return
	}
	if r.cfg.Start == startLatest {
		r.log.Warn("rows that were not logged are left out, for the source has `start: latest`",
			slog.String("table", n.String()), slog.String("why", why))
		return
	}
	r.log.Info("the table will be read by a snapshot", slog.String("table", n.String()), slog.String("why", why))
	r.queue(n)
}

// emptied applies the policy for tables whose rows vanish without being logged.
func (r *reader) emptied(h *replication.EventHeader, n tableName, why string) {
	if r.snap != nil {
		r.snap.emptied(n)
	}
	switch r.cfg.Truncate {
	case truncateIgnore:
		r.see.truncates.Add(1)
		return
	case truncateStop:
		r.park(n, &pipeline.StopError{Code: codeEmptied, Where: fmt.Sprintf("%s at %s", n, r.at),
			Err: errors.New("its rows went by " + why + ", and the source has `truncate: stop`"),
			Fix: "set `truncate: propagate` or `truncate: ignore`, and restart the pipeline: the table is read anew"})
		return
	}
	r.see.truncates.Add(1)
	r.emitTruncate(h, n)
}
