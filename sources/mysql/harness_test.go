package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/mysql"
	"github.com/daybook-data/daybook/sources/sourcetest"
	driver "github.com/go-sql-driver/mysql"
)

var pool services.Pool

func TestMain(m *testing.M) {
	_ = driver.SetLogger(&driver.NopLogger{}) // tests kill connections on purpose
	os.Exit(pool.Run(m))
}

// patience bounds every wait for something that is certain to come.
const patience = 60 * time.Second

// rig is a database, a journal and a source between them.
type rig struct {
	t       *testing.T
	server  *services.MySQL
	db      *sql.DB
	name    string // of the database
	journal *sourcetest.Journal
	cfg     mysql.Config
	log     *slog.Logger
}

func newRig(t *testing.T, server *services.MySQL) *rig {
	t.Helper()
	name := server.DatabaseForTest(t)
	r := &rig{t: t, server: server, name: name, journal: sourcetest.NewJournal(), log: slog.New(slog.DiscardHandler)}
	if os.Getenv("DAYBOOK_TEST_LOG") != "" {
		r.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	r.db = r.open("time_zone=%27%2B00%3A00%27&sql_mode=%27%27")
	r.cfg = mysql.Config{
		Addr: server.Addr, User: "repl", Password: configs.NewSecret("repl"), Tables: []string{name + ".*"},
		Start: "snapshot", ZeroDate: "text", Truncate: "propagate", ChunkRows: 1000,
	}
	return r
}

// openRoot returns connections to no database.
func openRoot(server *services.MySQL) (*sql.DB, error) {
	return sql.Open("mysql", server.DSN("", "root"))
}

// open returns connections to the rig's database with the given parameters.
func (r *rig) open(params string) *sql.DB {
	r.t.Helper()
	db, err := sql.Open("mysql", r.server.DSN(r.name, "app")+"?multiStatements=true&charset=utf8mb4&"+params)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (r *rig) exec(queries ...string) {
	r.t.Helper()
	for _, q := range queries {
		if _, err := r.db.ExecContext(r.t.Context(), q); err != nil {
			r.t.Fatalf("%.300s: %v", q, err)
		}
	}
}

func (r *rig) source(once bool) *mysql.Source {
	r.t.Helper()
	s, err := mysql.New(r.cfg, pipeline.SourceEnv{Pipeline: "p-" + r.name, Name: "db", Stream: "s", Once: once, Log: r.log})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// tryOnce reads what is there and returns how that ended.
func (r *rig) tryOnce(rng *rand.Rand) error {
	s := r.source(true)
	from, out := r.journal.Start(rng, s)
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	err := s.Run(ctx, from, out)
	for _, f := range out.Faults() {
		r.t.Error(f)
	}
	return err
}

// once reads what is there.
func (r *rig) once() {
	r.t.Helper()
	if err := r.tryOnce(nil); err != nil {
		r.t.Fatalf("reading once: %v", err)
	}
}

// running is a source under way.
type running struct {
	from   pipeline.Position
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
	source *mysql.Source
	out    *sourcetest.Emitter
}

func (r *rig) start(rng *rand.Rand) *running {
	r.t.Helper()
	s := r.source(false)
	from, out := r.journal.Start(rng, s)
	ctx, cancel := context.WithCancel(r.t.Context())
	run := &running{cancel: cancel, done: make(chan struct{}), source: s, from: from, out: out}
	go func() {
		defer close(run.done)
		run.err = s.Run(ctx, from, out)
	}()
	r.t.Cleanup(run.stop)
	return run
}

func (r *running) stop() { r.cancel(); <-r.done }

// kill ends the run at a random moment: three of four times counted from when it has
// emitted something, for on a busy machine it is not even connected before.
func (r *running) kill(rng *rand.Rand, within time.Duration) {
	emits := rng.IntN(4) > 0
	for deadline := time.Now().Add(patience); emits && r.out.Emits() == 0 && time.Now().Before(deadline); {
		select {
		case <-r.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
	select {
	case <-r.done:
	case <-time.After(time.Duration(rng.Int64N(int64(within)))):
		r.cancel()
	}
}

// await polls until the condition holds.
func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not after %s", what, patience)
		}
		select {
		case <-r.journal.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// change is a record's value.
type change struct {
	Before, After map[string]any
	Op            string
	Source        struct {
		DB, Table, Snapshot, File, Connector, Name string
		GTID                                       *string
		TS                                         int64 `json:"ts_ms"`
		Pos, Row                                   int64
	}
	TS int64 `json:"ts_ms"`
}

func (r *rig) changes(table string) []change {
	r.t.Helper()
	var list []change
	for _, rec := range r.journal.Records() {
		if rec.Table == r.name+"."+table {
			list = append(list, r.decode(rec))
		}
	}
	return list
}

func (r *rig) decode(rec pipeline.Record) change {
	r.t.Helper()
	var c change
	d := json.NewDecoder(bytes.NewReader(rec.Value))
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		r.t.Fatalf("record %s: %v\n%s", rec.Position, err, rec.Value)
	}
	return c
}

// state applies the records of a table in the order of the journal, as a sink that
// holds state would.
func (r *rig) state(table string) map[string]map[string]any {
	r.t.Helper()
	rows := map[string]map[string]any{}
	for _, rec := range r.journal.Records() {
		if rec.Table != r.name+"."+table {
			continue
		}
		c := r.decode(rec)
		switch c.Op {
		case "c", "u", "r":
			rows[string(rec.Key)] = c.After
		case "d":
			delete(rows, string(rec.Key))
		case "t":
			clear(rows)
		default:
			r.t.Fatalf("unknown op %q", c.Op)
		}
	}
	return rows
}

// selected returns the table's rows as SELECT shows them, by their key.
func (r *rig) selected(table string) map[string]map[string]any {
	r.t.Helper()
	columns, key := r.columns(table)
	var list []string
	for _, c := range columns {
		expr := quoted(c.name)
		if c.kind == "bit" {
			expr += "+0"
		}
		list = append(list, expr)
	}
	rows, err := r.db.QueryContext(r.t.Context(), "SELECT "+strings.Join(list, ",")+" FROM "+quoted(table))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]map[string]any{}
	for rows.Next() {
		raw := make([]sql.RawBytes, len(columns))
		dest := make([]any, len(columns))
		for i := range raw {
			dest[i] = &raw[i]
		}
		if err := rows.Scan(dest...); err != nil {
			r.t.Fatal(err)
		}
		row := map[string]any{}
		for i, c := range columns {
			row[c.name] = c.shown(raw[i])
		}
		var k []string
		for _, name := range key {
			b, _ := json.Marshal(row[name])
			k = append(k, fmt.Sprintf("%q:%s", name, b))
		}
		all["{"+strings.Join(k, ",")+"}"] = row
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return all
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

type shownColumn struct{ name, kind string }

// shown is what a value must be in the envelope.
func (c shownColumn) shown(v sql.RawBytes) any {
	if v == nil {
		return nil
	}
	switch c.kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "bit":
		return json.Number(v)
	case "year":
		n, _ := strconv.Atoi(string(v))
		return json.Number(strconv.Itoa(n))
	case "float", "double":
		return json.Number(v)
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return base64.StdEncoding.EncodeToString(v)
	}
	return string(v)
}

func (r *rig) columns(table string) (list []shownColumn, key []string) {
	r.t.Helper()
	rows, err := r.db.QueryContext(r.t.Context(), `SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`, r.name, table)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c shownColumn
		if err := rows.Scan(&c.name, &c.kind); err != nil {
			r.t.Fatal(err)
		}
		list = append(list, c)
	}
	keys, err := r.db.QueryContext(r.t.Context(), `SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX`, r.name, table)
	if err != nil {
		r.t.Fatal(err)
	}
	defer keys.Close()
	for keys.Next() {
		var name string
		if err := keys.Scan(&name); err != nil {
			r.t.Fatal(err)
		}
		key = append(key, name)
	}
	return list, key
}

// equal compares what a sink would hold with what SELECT shows.
func (r *rig) equal(tables ...string) {
	r.t.Helper()
	for _, table := range tables {
		if diff := r.diff(table); diff != "" {
			r.t.Errorf("%s: %s", table, diff)
		}
	}
}

func (r *rig) diff(table string) string {
	got, want := r.state(table), r.selected(table)
	history := ""
	keys := make([]string, 0, len(want))
	for k := range want {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys {
		if got[k] == nil {
			out = append(out, "missing "+k)
			continue
		}
		for name, w := range want[k] {
			if g, there := got[k][name]; !there || !sameValue(g, w) {
				out = append(out, fmt.Sprintf("%s %s: got %v, SELECT shows %v", k, name, g, w))
				if history == "" {
					history = r.history(table, k)
				}
			}
		}
		if len(got[k]) != len(want[k]) {
			out = append(out, fmt.Sprintf("%s: got %d columns, want %d", k, len(got[k]), len(want[k])))
		}
	}
	for k := range got {
		if want[k] == nil {
			out = append(out, "too much: "+k)
		}
	}
	if history != "" {
		out = append(out, history)
	}
	if len(out) > 20 {
		out = append(out[:20], fmt.Sprintf("and %d more", len(out)-20))
	}
	return strings.Join(out, "\n")
}

// history lists what the journal has of a row.
func (r *rig) history(table, key string) string {
	var b strings.Builder
	for _, rec := range r.journal.Records() {
		if rec.Table == r.name+"."+table && string(rec.Key) == key {
			c := r.decode(rec)
			fmt.Fprintf(&b, "\n  %s %s %v -> %v", rec.Position, c.Op, c.Before, c.After)
		}
	}
	return "the history of " + key + ":" + b.String()
}

func sameValue(got, want any) bool {
	g, gNumber := got.(json.Number)
	w, wNumber := want.(json.Number)
	if !gNumber || !wNumber {
		return got == want
	}
	if g == w {
		return true
	}
	a, err1 := g.Float64()
	b, err2 := w.Float64()
	return err1 == nil && err2 == nil && a == b && strings.ContainsAny(string(g)+string(w), ".eE")
}
