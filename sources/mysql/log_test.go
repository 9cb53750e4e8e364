package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

// Parts of JSON documents park the table, with the variable's name. The next start
// reads it anew.
func TestPartialJSON(t *testing.T) {
	r := newRig(t, pool.MySQL(t))
	r.exec("CREATE TABLE j (id INT PRIMARY KEY, d JSON)", `INSERT INTO j VALUES (1, '{"a": 1, "b": "`+strings.Repeat("x", 200)+`"}')`)
	r.once()
	partial := r.open("binlog_row_value_options=PARTIAL_JSON")
	if _, err := partial.Exec("UPDATE j SET d = JSON_SET(d, '$.a', 2)"); err != nil {
		t.Fatal(err)
	}
	if stop := r.wantStop("incomplete-rows"); !strings.Contains(stop.Fix, "binlog_row_value_options") {
		t.Errorf("the fix %q does not name the variable", stop.Fix)
	}
	if n := len(r.changes("j")); n != 1 {
		t.Errorf("%d records, want the one before", n)
	}
	r.once()
	r.equal("j")
}

// So do rows that lack columns.
func TestIncompleteRows(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		for _, image := range []string{"MINIMAL", "NOBLOB"} {
			for _, change := range []string{"UPDATE i SET b = 2 WHERE id = 1", "DELETE FROM i WHERE id = 1", "UPDATE i SET id = 7 WHERE id = 1"} {
				r := newRig(t, server)
				r.exec("CREATE TABLE i (id INT PRIMARY KEY, a INT, b INT, c TEXT, d VARCHAR(9), e BLOB)", "INSERT INTO i VALUES (1,1,1,'c','d','e')")
				r.once()
				if _, err := r.open("binlog_row_image=" + image).Exec(change); err != nil {
					t.Fatal(err)
				}
				if stop := r.wantStop("incomplete-rows"); !strings.Contains(stop.Fix, "binlog_row_image") {
					t.Errorf("the fix %q does not name the variable", stop.Fix)
				}
				r.once()
				r.equal("i")
			}
		}
	})
}

// Compressed transactions are the same transactions.
func TestCompressedTransactions(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		params := "binlog_transaction_compression=ON"
		if server.Flavor == "mariadb" {
			server = services.MariaDBForTest(t, services.Options{Variant: "compress"})
			params = ""
		}
		r := newRig(t, server)
		r.exec("CREATE TABLE z (id BINARY(16) PRIMARY KEY, v VARCHAR(200), n INT)")
		r.once()
		db := r.open(params)
		rng := rand.New(rand.NewPCG(5, 6))
		for range 1000 {
			var id [16]byte
			for i := range id {
				id[i] = byte(rng.Uint32())
			}
			if _, err := db.Exec(fmt.Sprintf("INSERT INTO z VALUES (X'%X', REPEAT('%d', 150), 1)", id, rng.IntN(9))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec("BEGIN; UPDATE z SET n = n + 1; DELETE FROM z WHERE v LIKE '3%'; COMMIT"); err != nil {
			t.Fatal(err)
		}
		r.once()
		r.equal("z")
		r.onePerPosition()
	})
}

// A change of the key is a delete and a create, in this order.
func TestKeyChanges(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE k (id INT PRIMARY KEY, v VARCHAR(9))", "CREATE TABLE c (a INT, b VARCHAR(9), v INT, PRIMARY KEY (b, a))",
			"INSERT INTO k VALUES (1,'one'),(2,'two'),(3,'three')", "INSERT INTO c VALUES (1,'x',1),(2,'x',2)")
		r.once()
		r.exec("UPDATE k SET id = 4, v = 'vier' WHERE id = 3", "BEGIN; UPDATE k SET id = 99 WHERE id = 1; UPDATE k SET id = 1 WHERE id = 2; UPDATE k SET id = 2 WHERE id = 99; COMMIT",
			"UPDATE c SET a = a + 10", "UPDATE c SET b = 'X', v = v + 1 WHERE a = 11")
		r.once()
		r.equal("k", "c")
		var ops []string
		for _, rec := range r.journal.Records()[5:7] {
			ops = append(ops, r.decode(rec).Op+string(rec.Key))
		}
		if got, want := strings.Join(ops, " "), `d{"id":3} c{"id":4}`; got != want {
			t.Errorf("a change of the key is %s, want %s", got, want)
		}
		for _, rec := range r.journal.Records() {
			if rec.Table == r.name+".c" && !strings.HasPrefix(string(rec.Key), `{"b":`) {
				t.Errorf("the key %s is not in the order of the primary key", rec.Key)
			}
		}
	})
}

// The envelope says where a change comes from and when it was made.
func TestEnvelope(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE v (id INT PRIMARY KEY, v VARCHAR(9))")
		r.once()
		before := time.Now().Add(-2 * time.Second)
		r.exec("INSERT INTO v VALUES (1,'a'),(2,'b')")
		r.once()
		records := r.journal.Records()
		for i, rec := range records {
			c := r.decode(rec)
			if c.Op != "c" || c.Before != nil || c.Source.DB != r.name || c.Source.Table != "v" || c.Source.Connector != "mysql" || c.Source.Name != "db" || c.Source.Row != int64(i) {
				t.Errorf("envelope: %s", rec.Value)
			}
			if !strings.HasPrefix(c.Source.File, "binlog.") || c.Source.Pos < 100 {
				t.Errorf("file %s, pos %d", c.Source.File, c.Source.Pos)
			}
			if at := time.UnixMicro(rec.Time); at.Before(before) || at.After(time.Now().Add(time.Second)) || c.Source.TS != rec.Time/1000 {
				t.Errorf("time %s, ts_ms %d", at, c.Source.TS)
			}
			if server.Flavor == "mysql" && c.Source.GTID != nil && rec.Time%1e6 == 0 && records[0].Time == records[1].Time && rec.Time%1000 == 0 {
				t.Logf("the time %d has no microseconds", rec.Time)
			}
		}
		if len(records) != 2 || records[0].Position == records[1].Position {
			t.Errorf("%d records at %v", len(records), records)
		}
	})
}

// XA transactions count when they are committed, not when they are prepared.
func TestXATransactions(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE x (id INT PRIMARY KEY, v VARCHAR(9))")
		r.once()
		conn := func(queries ...string) {
			t.Helper()
			// A session of its own, which ends: until then it keeps what it prepared.
			c := r.open("")
			c.SetMaxOpenConns(1)
			defer c.Close()
			for _, q := range queries {
				if _, err := c.ExecContext(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
		}
		id := func(n int) string { return fmt.Sprintf("'%s-%d'", r.name, n) }
		conn("XA START "+id(1), "INSERT INTO x VALUES (1,'a'),(2,'b')", "XA END "+id(1), "XA PREPARE "+id(1))
		r.exec("INSERT INTO x VALUES (10,'between')")
		r.once()
		if got := r.afters("x"); len(got) != 1 {
			t.Fatalf("before the commit: %v", got)
		}
		r.exec("XA COMMIT " + id(1))
		r.once()
		r.equal("x")
		conn("XA START "+id(2), "INSERT INTO x VALUES (3,'c')", "UPDATE x SET v = 'no' WHERE id = 1", "XA END "+id(2), "XA PREPARE "+id(2))
		r.once()
		r.exec("INSERT INTO x VALUES (11,'between')", "XA ROLLBACK "+id(2))
		conn("XA START "+id(3), "INSERT INTO x VALUES (4,'d')", "XA END "+id(3), "XA COMMIT "+id(3)+" ONE PHASE")
		r.once()
		r.equal("x")
		r.onePerPosition()
	})
}

// Changes logged as statements stop the source where they may concern a captured table.
func TestStatementsInTheLog(t *testing.T) {
	r := newRig(t, pool.MariaDB(t))
	r.exec("CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(9))", "CREATE TABLE elsewhere (id INT PRIMARY KEY)", "INSERT INTO s VALUES (1,'a')")
	r.cfg.Tables = []string{r.name + ".s"}
	r.once()
	db := r.open("binlog_format=STATEMENT")
	if _, err := db.Exec("INSERT INTO elsewhere VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	r.once()
	if _, err := db.Exec("UPDATE s SET v = 'b'"); err != nil {
		t.Fatal(err)
	}
	r.wantStop("statement-binlog")
}

// A log that was purged is a stop, never a jump.
func TestPurgedLog(t *testing.T) {
	for _, variant := range []string{"", "nogtid", "mariadb"} {
		t.Run("variant "+variant, func(t *testing.T) {
			t.Parallel()
			var server *services.MySQL
			if variant == "mariadb" {
				server = services.MariaDBForTest(t, services.Options{})
			} else {
				server = services.MySQLForTest(t, services.Options{Variant: variant})
			}
			for _, start := range []string{"snapshot", "latest"} {
				r := newRig(t, server)
				r.cfg.Start = start
				r.exec("CREATE TABLE p (id INT PRIMARY KEY)", "INSERT INTO p VALUES (1)")
				r.once()
				r.exec("INSERT INTO p VALUES (2)", "FLUSH LOGS", "INSERT INTO p VALUES (3)", "FLUSH LOGS", "INSERT INTO p VALUES (4)")
				r.purge()
				before := len(r.journal.Records())
				r.wantStop("binlog-purged")
				if n := len(r.journal.Records()); n != before {
					t.Errorf("%d records came behind the gap", n-before)
				}
				// What the stop says to do mends it, rows that went in the gap included.
				r.exec("DELETE FROM p WHERE id = 1")
				r.cfg.Start = "replace"
				_, out := r.journal.Start(nil, nil)
				if err := r.source(true).Run(t.Context(), "", out); err != nil {
					t.Fatal(err)
				}
				r.equal("p")
				r.exec("INSERT INTO p VALUES (5)", "DELETE FROM p WHERE id = 2")
				r.once()
				r.equal("p")
			}
		})
	}
}

// While the journal takes nothing, the log that is still to be read may go.
func TestPurgeWhileTheJournalIsFull(t *testing.T) {
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			r := newRig(t, start(t, services.Options{}))
			r.exec("CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(2000), n INT)")
			run := r.start(nil)
			r.await("the start", func() bool { return run.source.Report().Phase == "live" })
			unblock := run.out.Block()
			for i := range 20 { // more than the buffers between hold
				r.exec(fmt.Sprintf("INSERT INTO p SELECT %d + seq, REPEAT('x', 1900), 0 FROM (WITH RECURSIVE s(seq) AS (SELECT 0 UNION ALL SELECT seq + 1 FROM s WHERE seq < 499) SELECT seq FROM s) q", i*1000), "FLUSH BINARY LOGS")
			}
			files := slices.Collect(r.logFiles())
			r.exec("PURGE BINARY LOGS TO '" + files[len(files)-1] + "'")
			unblock()
			r.await("all, or a stop", func() bool {
				select {
				case <-run.done:
					return true
				default:
					return len(r.journal.Records()) == 20*500
				}
			})
			run.stop()
			for {
				err := r.tryOnce(nil)
				var stop *pipeline.StopError
				if errors.As(err, &stop) && stop.Code == "binlog-purged" {
					t.Logf("stopped: %v", err)
					break
				}
				if err == nil {
					r.equal("p")
					break
				}
			}
			// Whatever came, came without a gap.
			last := -1
			for _, c := range r.changes("p") {
				var id int
				fmt.Sscan(fmt.Sprint(c.After["id"]), &id)
				if id != last+1 && id != (last/1000+1)*1000 {
					t.Fatalf("%d comes behind %d", id, last)
				}
				last = id
			}
		})
	}
}

// Rows that a foreign key changes are logged by MySQL from 9.6 on. Elsewhere such a
// table is refused, whenever it gets the key.
func TestForeignKeysThatAct(t *testing.T) {
	create := []string{"CREATE TABLE parent (id INT PRIMARY KEY)", "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
		"INSERT INTO parent VALUES (1),(2),(3)", "INSERT INTO child VALUES (1,1),(2,2),(3,2),(4,3)"}
	t.Run("mysql", func(t *testing.T) {
		r := newRig(t, pool.MySQL(t))
		r.exec(create...)
		r.once()
		r.exec("DELETE FROM parent WHERE id = 2", "UPDATE parent SET id = 30 WHERE id = 3")
		r.once()
		r.equal("parent", "child")
	})
	t.Run("mariadb", func(t *testing.T) {
		r := newRig(t, pool.MariaDB(t))
		r.exec(create[0])
		r.once()
		r.exec(create[1:]...)
		r.wantStop("unlogged-cascade")
		r.equal("parent")
		r.exec("DELETE FROM parent WHERE id = 2") // unlogged in child
		r.wantStop("unlogged-cascade")
		r.exec("INSERT INTO child VALUES (7,1)", "ALTER TABLE child DROP FOREIGN KEY child_ibfk_1", "INSERT INTO child VALUES (8,8)", "DELETE FROM parent WHERE id = 3")
		r.once()
		r.equal("parent", "child")
		again := newRig(t, r.server)
		again.exec(create...)
		again.wantStop("unlogged-cascade")
		again.cfg.Cascades = "ignore"
		again.once()
		again.equal("parent", "child")
	})
}

// purge removes all but the newest file of the log, however long the server takes.
func (r *rig) purge() {
	r.t.Helper()
	r.await("the purge", func() bool {
		var files []string
		rows, err := r.db.Query("SHOW BINARY LOGS")
		if err != nil {
			r.t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for rows.Next() {
			dest := make([]any, len(columns))
			var name string
			dest[0] = &name
			for i := range columns[1:] {
				dest[i+1] = new(any)
			}
			if err := rows.Scan(dest...); err != nil {
				r.t.Fatal(err)
			}
			files = append(files, name)
		}
		if len(files) == 1 {
			return true
		}
		r.exec("PURGE BINARY LOGS TO '" + files[len(files)-1] + "'")
		return false
	})
}

// proxy is a way to a server that can be cut.
type proxy struct {
	net.Listener
	to    string
	limit atomic.Int64 // bytes from the server after which a connection is cut; 0 for none
	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	go p.serve()
	t.Cleanup(func() { l.Close(); p.cut() })
	return p
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.to)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, s)
		p.mu.Unlock()
		go func() { _, _ = io.Copy(s, c); s.Close() }()
		go func() {
			if n := p.limit.Load(); n > 0 {
				_, _ = io.CopyN(c, s, n)
			} else {
				_, _ = io.Copy(c, s)
			}
			c.Close()
			s.Close()
		}()
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// A transaction that is cut at any byte is read again from its start, and comes
// once.
func TestConnectionCutInsideALargeTransaction(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		const rows = 40_000
		r := newRig(t, server)
		p := newProxy(t, server.Addr)
		r.cfg.Addr = p.Addr().String()
		r.cfg.Start = "latest"
		r.exec("CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.once()
		c, err := r.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var script strings.Builder
		script.WriteString("BEGIN;")
		for from := 1; from <= rows; from += 1000 {
			script.WriteString("INSERT INTO big VALUES ")
			for id := from; id < from+1000; id++ {
				if id > from {
					script.WriteByte(',')
				}
				fmt.Fprintf(&script, "(%d,'row %d',0)", id, id)
			}
			script.WriteByte(';')
		}
		script.WriteString("COMMIT")
		if _, err := c.ExecContext(t.Context(), script.String()); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		cuts := 0
		for range 10 {
			p.limit.Store(60_000 + rng.Int64N(rows*24))
			err := r.tryOnce(rng)
			var stop *pipeline.StopError
			switch {
			case err == nil:
			case errors.As(err, &stop):
				t.Fatalf("a cut connection stops the source: %v", err)
			default:
				cuts++
			}
		}
		p.limit.Store(0)
		r.once()
		r.onePerPosition()
		if n := len(r.changes("big")); n != rows || cuts == 0 {
			t.Errorf("%d records of %d rows after %d cuts", n, rows, cuts)
		}
	})
}

// Files are ordered by their number.
func TestFileNumbersBeyondSixDigits(t *testing.T) {
	server := services.MySQLForTest(t, services.Options{Variant: "nogtid", Args: []string{"--log-bin=other-base"}})
	r := newRig(t, server)
	r.exec("CREATE TABLE f (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
	r.insertRows("f", 1, 10)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	renumberLog(t, filepath.Join(server.Dir, "data"), "other-base", 999997)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.once()
	run := r.start(nil)
	for i := range 5 {
		r.exec(fmt.Sprintf("INSERT INTO f VALUES (%d,'x',1)", 100+i), "FLUSH BINARY LOGS")
	}
	r.await("the rows", func() bool { return len(r.state("f")) == 15 })
	run.stop()
	r.exec("UPDATE f SET n = 2 WHERE id > 100")
	r.once()
	r.equal("f")
	r.onePerPosition()
	c := r.changes("f")
	if last := c[len(c)-1].Source.File; last != "other-base.1000003" {
		t.Errorf("the last change is in %s", last)
	}
	r.cfg.ChunkRows = 2 // a snapshot waits for places in files with such numbers
	r.cfg.Tables = append(r.cfg.Tables, "!"+r.name+".nothing")
	r.exec("CREATE TABLE g (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
	r.insertRows("g", 1, 9)
	r.once()
	r.equal("f", "g")
}

// renumberLog gives the newest file of a stopped server's log another number, and
// removes the others.
func renumberLog(t *testing.T, dir, base string, number int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, base+".[0-9]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no log in %s: %v", dir, err)
	}
	slices.Sort(files)
	name := fmt.Sprintf("%s.%06d", base, number)
	if err := os.Rename(files[len(files)-1], filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	for _, f := range files[:len(files)-1] {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, base+".index"), []byte("./"+name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Numbers of tables mean something for a moment only.
func TestTableNumbersAreReused(t *testing.T) {
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run(flavor+" restarted", func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			server := start(t, services.Options{})
			r := newRig(t, server)
			r.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(40))", "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(40))")
			r.once()
			for round := range 3 {
				tables := []string{"a", "b"}
				if round%2 == 1 {
					tables = []string{"b", "a"}
				}
				for _, table := range tables {
					r.exec(fmt.Sprintf("INSERT INTO %s VALUES (%d, 'of %s')", table, round, table))
				}
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.exec("FLUSH TABLES")
			}
			r.once()
			r.equal("a", "b")
		})
	}
}

// A heartbeat and other tables' transactions move the position on.
func TestPositionMovesWhileNothingIsCaptured(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.Tables = []string{r.name + ".quiet"}
		r.exec("CREATE TABLE quiet (id INT PRIMARY KEY)", "CREATE TABLE loud (id INT PRIMARY KEY)")
		ctx, cancel := context.WithCancel(t.Context())
		out := &lastPosition{}
		source := r.source(false)
		done := make(chan error, 1)
		go func() { done <- source.Run(ctx, "", out) }()
		r.await("the start", func() bool { return source.Report().Phase == "live" })
		r.exec("INSERT INTO loud VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO loud VALUES (2)")
		var newest string
		for file := range r.logFiles() {
			newest = file
		}
		r.await("the position to reach "+newest, func() bool { return strings.Contains(out.get(), newest) })
		cancel()
		<-done
	})
}

// lastPosition is an Emitter that keeps the last position only.
type lastPosition struct {
	mu   sync.Mutex
	last pipeline.Position
}

func (l *lastPosition) Emit(_ context.Context, _ []pipeline.Record, resume pipeline.Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if resume != "" {
		l.last = resume
	}
	return nil
}

func (l *lastPosition) Flush(context.Context) error { return nil }

func (l *lastPosition) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.last)
}

// logFiles yields the names of the log's files, the newest last.
func (r *rig) logFiles() func(func(string) bool) {
	return func(yield func(string) bool) {
		rows, err := r.db.Query("SHOW BINARY LOGS")
		if err != nil {
			r.t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for rows.Next() {
			dest := make([]any, len(columns))
			var name string
			dest[0] = &name
			for i := range columns[1:] {
				dest[i+1] = new(any)
			}
			if err := rows.Scan(dest...); err != nil {
				r.t.Fatal(err)
			}
			if !yield(name) {
				return
			}
		}
	}
}

// A position is good on its own server only, unless GTIDs say more.
func TestOtherServer(t *testing.T) {
	for _, variant := range []string{"", "nogtid"} {
		t.Run("variant "+variant, func(t *testing.T) {
			t.Parallel()
			one := services.MySQLForTest(t, services.Options{Variant: variant})
			two := services.MySQLForTest(t, services.Options{Variant: variant})
			r := newRig(t, one)
			r.exec("CREATE TABLE o (id INT PRIMARY KEY)", "INSERT INTO o VALUES (1)")
			r.once()
			r.cfg.Addr = two.Addr
			r.wantStop("other-server")
		})
	}
	// With GTIDs a log that was reset gives out numbers again that were read.
	for reset, start := range map[string]func(testing.TB, services.Options) *services.MySQL{
		"RESET BINARY LOGS AND GTIDS": services.MySQLForTest, "RESET MASTER": services.MariaDBForTest,
	} {
		t.Run("reset to the same GTIDs, "+reset, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, start(t, services.Options{}))
			r.exec("CREATE TABLE o (id INT PRIMARY KEY)", "INSERT INTO o VALUES (0)", "FLUSH LOGS", "INSERT INTO o VALUES (1)")
			r.once()
			r.exec("FLUSH LOGS")
			r.purge()
			r.once() // its file has gone in order
			r.exec("INSERT INTO o VALUES (2)")
			r.once()
			r.equal("o")
			time.Sleep(1100 * time.Millisecond) // the age of a file is in whole seconds
			r.exec(reset)
			for i := range 20 {
				r.exec(fmt.Sprintf("INSERT INTO o VALUES (%d)", i+3))
			}
			r.wantStop("binlog-reset")
			for range 5 {
				r.exec("FLUSH LOGS")
			}
			r.wantStop("binlog-reset") // now there is a file of that name again
		})
	}
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, services.MySQLForTest(t, services.Options{Variant: "nogtid"}))
		r.exec("CREATE TABLE o (id INT PRIMARY KEY)", "INSERT INTO o VALUES (1)")
		r.once()
		r.exec("RESET BINARY LOGS AND GTIDS")
		r.wantStop("binlog-reset")
	})
	t.Run("reset behind", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, services.MySQLForTest(t, services.Options{Variant: "nogtid"}))
		r.exec("CREATE TABLE o (id INT PRIMARY KEY, v VARCHAR(9), n INT)", "INSERT INTO o VALUES (0, 'x', 0)")
		r.once()
		time.Sleep(1100 * time.Millisecond) // the age of a file is in whole seconds
		r.exec("RESET BINARY LOGS AND GTIDS")
		for i := range 100 {
			r.exec(fmt.Sprintf("INSERT INTO o VALUES (%d, 'y', 1)", i+1))
		}
		r.wantStop("binlog-reset")
	})
}

// Two replicas with one id hang up on each other; the second is told whose it is.
func TestServerIDIsTaken(t *testing.T) {
	r := newRig(t, pool.MySQL(t))
	r.cfg.ServerID = 4711
	r.cfg.User, r.cfg.Password = "app", configs.NewSecret("app")
	r.exec("CREATE TABLE o (id INT PRIMARY KEY)")
	run := r.start(nil)
	r.await("the start", func() bool { return run.source.Report().Phase == "live" })
	other := newRig(t, r.server)
	other.cfg.ServerID = 4711
	other.cfg.User, other.cfg.Password = "app", configs.NewSecret("app")
	if stop := other.wantStop("server-id-taken"); !strings.Contains(stop.Error(), "daybook/p-"+r.name) {
		t.Errorf("the stop does not name the rival: %v", stop)
	}
	run.stop()
	other.await("the server to forget the rival", func() bool { return other.tryOnce(nil) == nil })
	own := newRig(t, r.server)
	own.cfg.ServerID = 1
	own.wantStop("server-id-taken")
}

// Run ends when its context does, also while the server is silent.
func TestRunEndsWhileTheServerIsFrozen(t *testing.T) {
	server := services.MySQLForTest(t, services.Options{})
	r := newRig(t, server)
	r.exec("CREATE TABLE o (id INT PRIMARY KEY)")
	run := r.start(nil)
	r.await("the start", func() bool { return run.source.Report().Phase == "live" })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	run.cancel()
	select {
	case <-run.done:
	case <-ctx.Done():
		t.Error("Run goes on")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
}
