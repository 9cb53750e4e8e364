package mysql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// bind returns the codec for the rows that follow a table map of a captured table.
// The definition is used only if it agrees with the map. Else the map's own metadata
// gives the definition, if all of it is there; else the server's present definition,
// if no statement between here and now may have changed it. Else it stops. Promise 2.
func (r *registry) bind(ctx context.Context, m *tableMap, rd *reader) (*rowCodec, error) {
	n := r.id(m.db, m.name)
	t := r.tables[n]
	var why error
	if t != nil {
		if err := r.check(t); err != nil {
			return nil, err
		}
		if why = r.agree(t, m); why == nil {
			return r.codec(ctx, t, m)
		}
	} else {
		why = errors.New("the table's definition could not be followed")
	}
	if m.full {
		made, err := r.fromMap(ctx, m, t)
		if err != nil {
			return nil, err
		}
		r.set(n, made)
		return r.codec(ctx, made, m)
	}
	rd.log.Info("looking up a table's definition", slog.String("table", n.String()), slog.String("at", rd.at.String()), slog.Any("why", why))
	now, err := rd.settle(n)
	if err != nil && !errors.Is(err, errNotYet) {
		return nil, err
	}
	if now != nil {
		if err := r.check(now); err != nil {
			return nil, err
		}
		if later := r.agree(now, m); later == nil {
			return r.codec(ctx, now, m)
		} else {
			why = later
		}
	}
	r.set(n, nil) // the snapshot must not read by it either
	return nil, &tableError{n, &pipeline.StopError{Code: "schema-unknown", Where: fmt.Sprintf("%s at %s", n, rd.at),
		Err: fmt.Errorf("the columns of its rows are not known for certain: %w", why),
		Fix: "SET GLOBAL binlog_row_metadata = FULL, so that the log itself says them from then on, and restart the pipeline: the table is read anew"}}
}

// settle reads a table's present definition and makes it the one in use, if no
// statement logged since the reader's place may have changed it: errNotYet where one
// has. It returns nil where there is no such table.
func (r *reader) settle(n tableName) (*table, error) {
	t, err := r.srv.loadTable(r.ctx, n)
	if err != nil {
		return nil, err
	}
	end, err := r.srv.end(r.ctx)
	if err != nil {
		return nil, err
	}
	changed, err := r.scanDDL(r.safe.place, r.done, end.place, r.at, func(s statement, c *cursor) bool {
		return r.concerns(s, c, func(other tableName) bool { return other == n || other.table == "" && other.db == n.db })
	})
	if err != nil {
		return nil, err
	}
	if changed {
		return nil, errNotYet
	}
	if t != nil {
		r.reg.set(n, t)
	}
	return t, nil
}

// concerns reports whether a statement names one of the tables, or drops a database;
// is gets that with an empty table.
func (r *reader) concerns(s statement, c *cursor, is func(tableName) bool) bool {
	if c.peek(1).is("DATABASE") || c.peek(1).is("SCHEMA") {
		d := &cursor{tokens: c.tokens, i: 2}
		d.accept("IF", "EXISTS")
		db, _ := d.name()
		return c.peek(0).is("DROP") && is(r.reg.id(db, ""))
	}
	for n := range r.names(s, c) {
		if is(n) {
			return true
		}
	}
	return false
}

// names yields all that may be the name of a table in a statement.
func (r *reader) names(s statement, c *cursor) iter.Seq[tableName] {
	return func(yield func(tableName) bool) {
		for i, t := range c.tokens {
			if t.kind != tokenWord && t.kind != tokenName {
				continue
			}
			db := s.db
			if i >= 2 && c.tokens[i-1].is(".") {
				db = c.tokens[i-2].text
			}
			if !yield(r.reg.id(db, t.text)) {
				return
			}
		}
	}
}

// scan looks for DDL in a stretch of the log that is read for nothing else.
type scan struct {
	concerns func(statement, *cursor) bool
	behind   place // statements up to here are known
	found    bool
}

func (s *scan) ddl(r *reader, st statement, c *cursor, complete bool) {
	if s.behind.before(r.at) && (!complete || !st.utf8 || s.concerns(st, c)) {
		s.found = true
	}
}

// scanDDL reads the log between two places, on a connection of its own, and reports
// whether a statement behind `behind` concerns.
func (r *reader) scanDDL(from place, set gtidSet, to, behind place, concerns func(statement, *cursor) bool) (bool, error) {
	if !behind.before(to) {
		return false, nil
	}
	s := &scan{concerns: concerns, behind: behind}
	sub := &reader{
		ctx: r.ctx, cfg: r.cfg, srv: r.srv, reg: r.reg, see: &progress{}, log: r.log, out: nowhere{},
		at: from, safe: mark{place: from}, bindings: map[uint64]*binding{}, shadow: s,
	}
	sub.stop = func(bool) bool { return s.found || !sub.at.before(to) }
	d := r.dumpAs(sub, "/scan")
	defer sub.close()
	if err := d.run(r.ctx, from, set); err != nil && !errors.Is(err, errStopped) {
		return false, fmt.Errorf("looking for changes of definitions up to %s: %w", to, err)
	}
	return s.found, nil
}

// nowhere takes what a scan emits, which is nothing.
type nowhere struct{}

func (nowhere) Emit(context.Context, []pipeline.Record, pipeline.Position) error { return nil }
func (nowhere) Flush(context.Context) error                                      { return nil }

// fromMap makes a definition of a table map with full metadata. What the map does not
// tell is taken from the definition that was in use.
func (r *registry) fromMap(ctx context.Context, m *tableMap, old *table) (*table, error) {
	t := &table{DB: m.db, Name: m.name, Key: m.key}
	if len(m.key) > 0 {
		t.KeyName = "PRIMARY"
	}
	for i := range m.columns {
		c, err := r.columnFromMap(ctx, &m.columns[i])
		if err != nil {
			return nil, fmt.Errorf("column %s of %s.%s: %w", m.columns[i].name, m.db, m.name, err)
		}
		if old != nil {
			if k := old.index(c.Name); k >= 0 && old.Columns[k].Type == c.Type {
				switch m.columns[i].kind {
				case typeFloat, typeDouble:
					c.Dec = old.Columns[k].Dec
				case typeTime, typeDatetime, typeTimestamp:
					c.Len = old.Columns[k].Len
				}
			}
		}
		t.Columns = append(t.Columns, c)
	}
	if old != nil {
		t.Charset = old.Charset
		if len(t.Key) == 0 && old.KeyName != "PRIMARY" {
			t.setKey(old.keyNames())
			t.KeyName = old.KeyName
			if slices.Contains(t.Key, -1) { // a column of it has gone
				t.Key, t.KeyName = nil, ""
			}
		}
	}
	return t, nil
}

const collationBinary = 63

// typeOfKind maps the types of columns in the log to data types, as far as they alone
// say it.
var typeOfKind = map[byte]string{
	typeTiny: "tinyint", typeShort: "smallint", typeInt24: "mediumint", typeLong: "int", typeLongLong: "bigint",
	typeFloat: "float", typeDouble: "double", typeYear: "year", typeDecimal: "decimal", typeBit: "bit",
	typeDate: "date", typeDatetime: "datetime", typeDatetime2: "datetime", typeTimestamp: "timestamp", typeTimestamp2: "timestamp",
	typeTime: "time", typeTime2: "time", typeJSON: "json", typeEnum: "enum", typeSet: "set", typeGeometry: "geometry",
}

// columnFromMap translates one column of a table map.
func (r *registry) columnFromMap(ctx context.Context, l *mapColumn) (column, error) {
	c := column{Name: l.name, Unsigned: l.unsigned, NotNull: !l.nullable}
	cs := r.srv.collations[l.collation]
	binary := l.collation == collationBinary
	width := max(1, r.srv.maxLen[cs])
	c.Type = typeOfKind[l.kind]
	switch l.kind {
	case typeDecimal:
		c.Len, c.Dec = int(l.meta>>8), int(l.meta&0xFF)
	case typeBit:
		c.Len = int(l.meta>>8)*8 + int(l.meta&0xFF)
	case typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2, typeTime, typeTime2:
		c.Len = int(l.meta)
	case typeEnum, typeSet:
		err := r.enumFromMap(ctx, &c, l, cs)
		return c, err
	case typeString, typeVarchar, typeVarString:
		c.Type = map[bool]string{true: "varchar", false: "char"}[l.kind != typeString]
		c.Len = int(l.meta) / width
	case typeBlob:
		c.Type = map[uint16]string{1: "tinytext", 2: "text", 3: "mediumtext", 4: "longtext"}[l.meta]
	}
	if c.Type == "" {
		c.Type = fmt.Sprintf("type %d", l.kind)
	}
	if hasCharset(c.Type) {
		if binary {
			c.toBytes()
		} else if c.Charset = cs; cs == "" {
			c.Charset = fmt.Sprintf("of the unknown collation %d", l.collation) // registry.check refuses it
		}
	}
	return c, nil
}

func (r *registry) enumFromMap(ctx context.Context, c *column, l *mapColumn, cs string) error {
	if c.Charset = cs; l.collation == collationBinary {
		c.Charset = "latin1" // the names are bytes; no harm where they are ASCII
	}
	if !r.srv.decodable(c.Charset) {
		return nil // registry.check refuses it
	}
	d, err := r.srv.decoder(ctx, c.Charset)
	if err != nil {
		return err
	}
	for _, v := range l.values {
		c.Values = append(c.Values, d.string([]byte(v)))
	}
	return nil
}

// dumpAs returns a dump that hands its events to the reader.
func (r *reader) dumpAs(sub *reader, suffix string) *dump {
	return &dump{
		cfg: r.cfg, flavor: r.srv.flavor, tls: r.tls, name: r.name + suffix, serverID: serverID(r.cfg.ServerID, r.name+suffix, suffix != ""),
		handle: func(e *replication.BinlogEvent) error { return sub.event(e) }, idle: sub.idle,
	}
}
