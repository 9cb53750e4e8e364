package mysql

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
)

// registry holds the tables as they were defined at the stream's position. Beside
// captured tables it keeps those of the same databases whose making it has seen, for
// they may take a captured one's name (gh-ost, pt-online-schema-change).
type registry struct {
	srv    *server
	sel    *selection
	zero   string
	source string

	// tables holds nil for a table whose definition could not be followed.
	tables map[tableName]*table
	// former are the keys that tables of unknown definition had before.
	former map[tableName][]column
	// generation changes with every change of a definition; bindings of an older one
	// are of no use.
	generation int

	packed string // tables as text, for the resume position; empty when out of date
}

func newRegistry(srv *server, sel *selection, cfg *Config, source string) *registry {
	return &registry{srv: srv, sel: sel, zero: cfg.ZeroDate, source: source, tables: map[tableName]*table{}, former: map[tableName][]column{}}
}

// id returns the name under which a table is kept.
func (r *registry) id(db, name string) tableName {
	if r.srv.fold {
		return tableName{strings.ToLower(db), strings.ToLower(name)}
	}
	return tableName{db, name}
}

func (r *registry) captured(n tableName) bool { return r.sel.has(n.db, n.table) }

// hasDatabase reports whether a captured table of the database is known.
func (r *registry) hasDatabase(db string) bool {
	for n := range r.tables {
		if n.db == db && r.captured(n) {
			return true
		}
	}
	return false
}

// set puts a definition in place; nil says that it is not known.
func (r *registry) set(n tableName, t *table) {
	if old := r.tables[n]; t == nil && old != nil {
		r.former[n] = old.keyColumns()
	}
	r.tables[n] = t
	r.changed()
}

func (r *registry) remove(n tableName) {
	delete(r.tables, n)
	delete(r.former, n)
	r.changed()
}

func (r *registry) changed() {
	r.generation++
	r.packed = ""
}

// load reads the captured tables as they are now.
func (r *registry) load(ctx context.Context) ([]tableInfo, error) {
	list, err := r.srv.listTables(ctx, r.sel)
	if err != nil {
		return nil, err
	}
	r.tables = map[tableName]*table{}
	for _, info := range list {
		t, err := r.srv.loadTable(ctx, info.name)
		if err != nil {
			return nil, err
		}
		if t != nil {
			r.tables[r.id(t.DB, t.Name)] = t
		}
	}
	r.changed()
	return list, nil
}

// check returns why a table can't be captured, a *tableError; nil where it can.
func (r *registry) check(t *table) error {
	stop := func(code, where, why, fix string) error {
		return &tableError{r.id(t.DB, t.Name), &pipeline.StopError{Code: code, Where: where, Err: errors.New(why),
			Fix: fix + fmt.Sprintf("take the table out with \"!%s\" in `tables`", t.full())}}
	}
	if t.Refused != "" {
		return stop(codeTable, t.full(), t.Refused, "")
	}
	if len(t.Key) == 0 {
		return stop(codeNoKey, t.full(), "it has neither a primary key nor a unique key without NULL, so its rows can't be told apart", "add a primary key, or ")
	}
	for i := range t.Columns {
		if why := t.Columns[i].problem(r.srv); why != "" {
			return stop(codeColumn, t.full()+"."+t.Columns[i].Name, why, "")
		}
	}
	for _, k := range t.Key {
		if t.Columns[k].Type == "float" {
			return stop(codeColumn, t.full()+"."+t.Columns[k].Name, "a FLOAT in the key does not name its row exactly", "")
		}
	}
	return nil
}

func compareNames(a, b tableName) int { return strings.Compare(a.String(), b.String()) }

// codec returns the codec for rows that follow the table map; the definition must
// agree with it.
func (r *registry) codec(ctx context.Context, t *table, m *tableMap) (*rowCodec, error) {
	if err := r.check(t); err != nil {
		return nil, err
	}
	c, err := r.newCodec(ctx, t)
	if err != nil {
		return nil, err
	}
	c.bindTo(m)
	return c, nil
}

// newCodec returns a codec for rows that a SELECT returns.
func (r *registry) newCodec(ctx context.Context, t *table) (*rowCodec, error) {
	c, err := newRowCodec(ctx, r.srv, t, r.zero, r.source)
	if err == nil {
		c.name = r.id(t.DB, t.Name)
	}
	return c, err
}

// pack returns the definitions as text, as compact as may be: they are part of the
// resume position.
func (r *registry) pack() string {
	if r.packed != "" {
		return r.packed
	}
	var list []*table
	for _, n := range slices.SortedFunc(maps.Keys(r.tables), compareNames) {
		if t := r.tables[n]; t != nil {
			list = append(list, t)
		} else {
			list = append(list, &table{DB: n.db, Name: n.table, Former: r.former[n]})
		}
	}
	var buf bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	// Neither a struct of texts and numbers nor a buffer in memory can fail.
	_ = json.NewEncoder(z).Encode(list)
	_ = z.Close()
	r.packed = base64.StdEncoding.EncodeToString(buf.Bytes())
	return r.packed
}

// unpack puts back what pack wrote.
func (r *registry) unpack(packed string) error {
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return fmt.Errorf("reading the table definitions of the position: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("reading the table definitions of the position: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return fmt.Errorf("reading the table definitions of the position: %w", err)
	}
	var list []*table
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("reading the table definitions of the position: %w", err)
	}
	r.tables = map[tableName]*table{}
	for _, t := range list {
		n := r.id(t.DB, t.Name)
		if t.Former != nil {
			r.former[n], t.Former = t.Former, nil
		}
		if len(t.Columns) == 0 && t.Refused == "" {
			r.tables[n] = nil
			continue
		}
		r.tables[n] = t
	}
	r.changed()
	return nil
}
