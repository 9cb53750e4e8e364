package mysql_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// logText is a log that may be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// keepLog returns what the rig's sources log from here on.
func (r *rig) keepLog() *logText {
	l := &logText{}
	r.log = slog.New(slog.NewTextHandler(l, nil))
	return l
}

// parked returns the codes of the parked tables, as the status shows them.
func (r *running) parked() string { return codes(r.source.Report().Parked) }

func codes(parked []pipeline.Parked) string {
	var list []string
	for _, p := range parked {
		_, table, _ := strings.Cut(p.What, ".")
		list = append(list, table+" "+p.Code)
	}
	return strings.Join(list, ", ")
}

// live waits until the source has caught up.
func (r *rig) live(run *running) {
	r.t.Helper()
	r.await("the source to catch up", func() bool {
		r.alive(run)
		return run.source.Report().Phase == "live"
	})
}

func (r *rig) alive(run *running) {
	r.t.Helper()
	select {
	case <-run.done:
		r.t.Fatalf("Run ended: %v", run.err)
	default:
	}
}

// reaches waits until the journal holds what the table does.
func (r *rig) reaches(run *running, tables ...string) {
	r.t.Helper()
	for _, table := range tables {
		r.await(table+" to arrive", func() bool {
			r.alive(run)
			return r.diff(table) == ""
		})
	}
}

// A table that can't be captured holds only itself: live, in the snapshot, and in
// transactions that it shares. Once it is mended it comes back by itself.
func TestParkedTablesHoldOnlyThemselves(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		log := r.keepLog()
		r.cfg.ChunkRows = 30
		r.exec("CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE bad (id INT, v VARCHAR(40), n INT)",
			"CREATE TABLE odd (id INT PRIMARY KEY, g GEOMETRY)", "INSERT INTO odd VALUES (1, POINT(1,2))")
		r.insertRows("good", 1, 200)
		r.insertRows("bad", 1, 200)
		run := r.start(nil)
		r.live(run)
		if got, want := run.parked(), "bad no-primary-key, odd unsupported-column"; got != want {
			t.Fatalf("parked: %q, want %q", got, want)
		}
		for _, p := range run.source.Report().Parked {
			if !strings.HasPrefix(p.Since, "binlog.") || p.Why == "" || p.Fix == "" || time.Since(p.At) > patience {
				t.Errorf("the status does not say all: %+v", p)
			}
			if !strings.Contains(log.String(), "table="+p.What) {
				t.Errorf("the log does not name %s:\n%s", p.What, log)
			}
		}
		r.exec("BEGIN; INSERT INTO bad VALUES (1000,'x',0); INSERT INTO good VALUES (1000,'x',0); INSERT INTO odd VALUES (2, NULL); UPDATE good SET n = 7 WHERE id < 9; DELETE FROM bad WHERE id < 50; COMMIT",
			"INSERT INTO good VALUES (1001,'y',0)", "UPDATE bad SET n = n + 1")
		r.reaches(run, "good")
		if n := len(r.changes("bad")) + len(r.changes("odd")); n != 0 {
			t.Errorf("%d records of parked tables", n)
		}
		run.stop()

		// A restart changes nothing, and says it again.
		run = r.start(nil)
		r.exec("INSERT INTO good VALUES (1002,'z',0)", "INSERT INTO bad VALUES (1002,'z',0)")
		r.reaches(run, "good")
		if got, want := run.parked(), "bad no-primary-key, odd unsupported-column"; got != want {
			t.Fatalf("parked after a restart: %q, want %q", got, want)
		}
		if got, want := codes(run.source.ParkedAt(run.from)), "bad no-primary-key, odd unsupported-column"; got != want {
			t.Errorf("parked at the position it went on from: %q, want %q", got, want)
		}
		r.exec("ALTER TABLE bad ADD PRIMARY KEY (id)", "INSERT INTO bad VALUES (1003,'after',0)", "UPDATE good SET n = 1")
		r.reaches(run, "good", "bad")
		if got, want := run.parked(), "odd unsupported-column"; got != want {
			t.Errorf("parked after the fix: %q, want %q", got, want)
		}
		if !strings.Contains(log.String(), "captured again") {
			t.Errorf("the log does not say that the table is read anew:\n%s", log)
		}
		run.stop()

		// An excluded table leaves the list.
		r.cfg.Tables = append(r.cfg.Tables, "!"+r.name+".odd")
		r.exec("INSERT INTO odd VALUES (3, NULL)", "DELETE FROM bad WHERE id < 100")
		r.once()
		r.equal("good", "bad")
		if n := len(r.changes("odd")); n != 0 {
			t.Errorf("%d records of an excluded table", n)
		}
		r.onePerPosition()
	})
}

// What no statement mends is tried again by a restart: the table is read anew, with
// what changed and went while it was parked.
func TestParkedTableComesBackWithARestart(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		log := r.keepLog()
		r.exec("CREATE TABLE i (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("i", 1, 100)
		run := r.start(nil)
		r.live(run)
		minimal := r.open("binlog_row_image=MINIMAL")
		r.exec("INSERT INTO good VALUES (1,'a',0)")
		if _, err := minimal.Exec("BEGIN; INSERT INTO good VALUES (2,'b',0); UPDATE i SET n = 9 WHERE id = 5; INSERT INTO good VALUES (3,'c',0); COMMIT"); err != nil {
			t.Fatal(err)
		}
		r.exec("DELETE FROM i WHERE id < 20", "UPDATE i SET id = 500 WHERE id = 50", "INSERT INTO i VALUES (1000,'late',0)", "INSERT INTO good VALUES (4,'d',0)")
		r.reaches(run, "good")
		if got, want := run.parked(), "i incomplete-rows"; got != want {
			t.Fatalf("parked: %q, want %q", got, want)
		}
		run.stop()
		r.exec("DELETE FROM i WHERE id BETWEEN 60 AND 70", "INSERT INTO good VALUES (5,'e',0)")
		run = r.start(nil)
		r.exec("INSERT INTO i VALUES (1001,'later',0)")
		r.reaches(run, "good", "i")
		if got := run.parked(); got != "" {
			t.Errorf("parked after a restart: %q", got)
		}
		if !strings.Contains(log.String(), "captured again") {
			t.Errorf("the log does not say that the table is read anew:\n%s", log)
		}
		run.stop()
		r.onePerPosition()
	})
}

// A parked table that is dropped, or swapped for a better one, is off the list.
func TestParkedTableIsReplaced(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE a (id INT, v INT)", "INSERT INTO a VALUES (1,1),(2,2)", "CREATE TABLE b (id INT, v INT)", "INSERT INTO b VALUES (1,1)",
			"CREATE TABLE c (id INT PRIMARY KEY, v INT)", "INSERT INTO c VALUES (1,1),(2,2)", "CREATE TABLE d (id INT, v INT)", "INSERT INTO d VALUES (1,1)")
		run := r.start(nil)
		r.live(run)
		r.exec("ALTER TABLE c DROP PRIMARY KEY", "DELETE FROM c WHERE id = 1")
		r.await("the table without a key to be parked", func() bool { r.alive(run); return strings.Contains(run.parked(), "c no-primary-key") })
		r.exec("DROP TABLE b", "CREATE TABLE b (id INT PRIMARY KEY, v INT)", "INSERT INTO b VALUES (7,7)",
			"CREATE TABLE _a (id INT PRIMARY KEY, v INT)", "INSERT INTO _a SELECT * FROM a", "RENAME TABLE a TO _old, _a TO a", "INSERT INTO a VALUES (3,3)", "DROP TABLE _old",
			"DROP TABLE c", "CREATE UNIQUE INDEX u ON d (id)", "ALTER TABLE d MODIFY id INT NOT NULL")
		r.reaches(run, "a", "b")
		r.await("the last statement", func() bool { r.alive(run); return run.parked() == "" || len(r.state("d")) == 1 })
		if got := run.parked(); got != "" {
			t.Errorf("parked: %q", got)
		}
		r.await("the rows of the table that got a unique key", func() bool { r.alive(run); return len(r.state("d")) == 1 })
		if n := len(r.state("c")); n != 0 {
			t.Errorf("%d rows of a dropped table are left", n)
		}
		run.stop()
		r.onePerPosition()
	})
}

// Rows that an XA transaction prepared while their table was parked are not lost when it
// is committed after the table has come back.
func TestPreparedRowsOfAParkedTable(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE d (id INT NOT NULL, v INT)", "INSERT INTO d VALUES (1,1)")
		r.wantStop("no-primary-key")
		r.exec("CREATE UNIQUE INDEX u ON d (id)")
		c := r.open("")
		c.SetMaxOpenConns(1)
		id := "'" + r.name + "'"
		for _, q := range []string{"XA START " + id, "INSERT INTO d VALUES (2,2)", "XA END " + id, "XA PREPARE " + id} {
			if _, err := c.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
		_ = c.Close()
		r.exec("CREATE VIEW w AS SELECT * FROM d") // it names the table: there it comes back
		run := r.start(nil)
		r.await("the table to come back", func() bool { r.alive(run); return run.parked() == "" && len(r.state("d")) == 1 })
		r.exec("XA COMMIT " + id)
		r.await("the row of the XA transaction", func() bool { r.alive(run); return len(r.state("d")) == 2 })
		run.stop()
	})
}

// A table that only the snapshot can't read holds up neither those before it nor those
// behind it.
func TestTableThatCannotBeReadIsParked(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		for _, table := range []string{"a", "m", "z"} {
			r.exec("CREATE TABLE " + table + " (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
			r.insertRows(table, 1, 100)
		}
		r.exec("ALTER TABLE m DISCARD TABLESPACE")
		run := r.start(nil)
		r.live(run)
		if got, want := run.parked(), "m table-damaged"; got != want {
			t.Errorf("parked: %q, want %q", got, want)
		}
		r.reaches(run, "a", "z")
		r.exec("DROP TABLE m", "CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "INSERT INTO m VALUES (1,'x',1)")
		r.reaches(run, "m")
		if got := run.parked(); got != "" {
			t.Errorf("parked: %q", got)
		}
		run.stop()
	})
}

// A table that the configuration leaves out and takes in again has no gap.
func TestTablesTakenOutAndInAgain(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("a", 1, 50)
		r.insertRows("b", 1, 50)
		r.once()
		all := r.cfg.Tables
		r.cfg.Tables = append(all[:1:1], "!"+r.name+".b")
		r.exec("DELETE FROM b WHERE id < 10", "UPDATE b SET n = 99", "INSERT INTO a VALUES (100,'x',0)")
		r.once()
		r.equal("a")
		r.cfg.Tables = all
		r.exec("INSERT INTO b VALUES (100,'x',0)")
		r.once()
		r.equal("a", "b")
	})
}

// Killed at any moment around parking and coming back, the parked table ends right, and
// of the others nothing is missing and nothing comes twice.
func TestParkingSurvivesKills(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, server)
		r.cfg.ChunkRows = 20
		r.exec("CREATE TABLE bad (id INT, v VARCHAR(40), n INT, PRIMARY KEY (id))")
		r.insertRows("bad", 1, 150)
		r.once()
		r.exec("CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(40), n INT)") // new: no snapshot reads it
		minimal := r.open("binlog_row_image=MINIMAL")
		over := make(chan struct{})
		var group sync.WaitGroup
		last := 0
		group.Go(func() {
			local := rand.New(rand.NewPCG(seed, 4))
			keyed := true
			for {
				select {
				case <-over:
					if !keyed {
						r.parkingStep("ALTER TABLE bad ADD PRIMARY KEY (id)")
					}
					return
				default:
				}
				last++
				one := fmt.Sprintf("UPDATE bad SET n = n + 1, v = 'at %d' WHERE id = %d", last, 1+local.IntN(150))
				r.parkingStep(fmt.Sprintf("BEGIN; %s; INSERT INTO good VALUES (%d,'x',0); DELETE FROM bad WHERE id = %d; INSERT INTO bad VALUES (%d,'new',0); COMMIT",
					one, last, 150+last-local.IntN(9), 150+last))
				switch local.IntN(12) {
				case 0:
					if keyed {
						r.parkingStep("ALTER TABLE bad DROP PRIMARY KEY")
					} else {
						r.parkingStep("ALTER TABLE bad ADD PRIMARY KEY (id)")
					}
					keyed = !keyed
				case 1:
					_, _ = minimal.Exec(fmt.Sprintf("UPDATE bad SET n = -1 WHERE id = %d", 1+local.IntN(150)))
				}
			}
		})
		stop := sync.OnceFunc(func() { close(over); group.Wait() })
		t.Cleanup(stop)
		parked := 0
		// On a busy machine the writer may not have come to a change that parks by then.
		begun := time.Now()
		for n := 0; n < kills()/3 || parked == 0 && time.Since(begun) < time.Minute; n++ {
			run := r.start(rng)
			switch rng.IntN(3) {
			case 0:
				run.out.FailEmit(rng.IntN(40), sourcetest.ErrFenced)
			case 1:
				run.out.FailFlush(sourcetest.ErrFenced)
			}
			run.kill(rng, 150*time.Millisecond)
			<-run.done
			if run.parked() != "" {
				parked++
			}
			for _, f := range run.out.Faults() {
				t.Error(f)
			}
		}
		stop()
		// Each restart gets past the incomplete rows before it.
		for tries, err := 0, r.tryOnce(rng); err != nil; tries, err = tries+1, r.tryOnce(nil) {
			if tries == 2 {
				t.Fatalf("parked still: %v", err)
			}
		}
		r.equal("good", "bad")
		r.everyIDOnce("good", last)
		t.Logf("%d kills, %d of them with the table parked; %d records", kills()/3, parked, len(r.journal.Records()))
		if parked == 0 {
			t.Error("no kill met a parked table")
		}
	})
}

// parkingStep runs a statement; it is called beside the test.
func (r *rig) parkingStep(q string) {
	if _, err := r.db.ExecContext(context.Background(), q); err != nil {
		r.t.Errorf("%.200s: %v", q, err)
	}
}

// everyIDOnce wants an insert of each id up to last, once.
func (r *rig) everyIDOnce(table string, last int) {
	r.t.Helper()
	seen := map[string]bool{}
	for _, rec := range r.journal.Records() {
		if rec.Table != r.name+"."+table {
			continue
		}
		if op := r.decode(rec).Op; op != "c" || seen[string(rec.Key)] {
			r.t.Errorf("%s: got %s of %s at %s, want one c", table, op, rec.Key, rec.Position)
		}
		seen[string(rec.Key)] = true
	}
	if len(seen) != last {
		r.t.Errorf("%s: %d inserts, want %d", table, len(seen), last)
	}
}
