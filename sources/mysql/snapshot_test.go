package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// modes runs a test on MySQL with and without GTIDs, and on MariaDB.
func modes(t *testing.T, test func(t *testing.T, server *services.MySQL)) {
	each(t, test)
	t.Run("mysql without GTIDs", func(t *testing.T) {
		t.Parallel()
		test(t, services.MySQLForTest(t, services.Options{Variant: "nogtid"}))
	})
}

// insertRows fills t (id, v, n) with rows from..to.
func (r *rig) insertRows(table string, from, to int) {
	r.t.Helper()
	for from <= to {
		var rows []string
		for ; len(rows) < 1000 && from <= to; from++ {
			rows = append(rows, fmt.Sprintf("(%d,'row %d',%d)", from, from, from%7))
		}
		r.exec("INSERT INTO " + table + " VALUES " + strings.Join(rows, ","))
	}
}

// writers change a table (id, v, n) until stopped: inserts, updates, deletes, changes
// of the key, transactions of several rows, some rolled back.
func (r *rig) writers(table string, workers, maxID int) (stop func()) {
	// Not by a context: a commit that is given up may still happen, later.
	over := make(chan struct{})
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 99))
			for {
				select {
				case <-over:
					return
				default:
				}
				// A key may be taken, a lock may end in a deadlock: then the next one.
				_ = r.transaction(context.Background(), rng, table, maxID)
			}
		})
	}
	stop = sync.OnceFunc(func() { close(over); group.Wait() })
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) transaction(ctx context.Context, rng *rand.Rand, table string, maxID int) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for range 1 + rng.IntN(4) {
		id, other := 1+rng.IntN(maxID), 1+rng.IntN(maxID)
		switch rng.IntN(8) {
		case 0, 1:
			_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?, ?, 0)", id, fmt.Sprint("new ", rng.Uint32()))
		case 2:
			_, err = tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE id = ?", id)
		case 3:
			_, err = tx.ExecContext(ctx, "UPDATE "+table+" SET id = ? WHERE id = ?", other, id)
		default:
			_, err = tx.ExecContext(ctx, "UPDATE "+table+" SET v = ?, n = n + 1 WHERE id = ?", fmt.Sprint("up ", rng.Uint32()), id)
		}
		if err != nil {
			return err
		}
	}
	if rng.IntN(10) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}

// kills is how often the crash tests kill, all modes together; nightly runs set more.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("DAYBOOK_KILLS")); err == nil {
		return n
	}
	return 75
}

// Killed at any moment of the snapshot, with writers at work, what the sinks get
// is what the table holds.
func TestSnapshotSurvivesKills(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, server)
		r.cfg.ChunkRows = 40
		r.exec("CREATE TABLE k (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE z (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("k", 1, 3000)
		r.insertRows("z", 1, 200)
		stopWriters := r.writers("k", 2, 4000)
		cut := 0
		for range kills() / 3 {
			run := r.start(rng)
			switch rng.IntN(3) {
			case 0:
				run.out.FailEmit(rng.IntN(60), sourcetest.ErrFenced)
			case 1:
				run.out.FailFlush(sourcetest.ErrFenced)
			}
			run.kill(rng, 250*time.Millisecond)
			if run.source.Report().Phase == "snapshot" {
				cut++
			}
			run.stop()
			if run.err == nil || !errors.Is(run.err, context.Canceled) && !errors.Is(run.err, sourcetest.ErrFenced) {
				t.Fatalf("Run returned %v", run.err)
			}
			for _, f := range run.out.Faults() {
				t.Error(f)
			}
		}
		stopWriters()
		if err := r.tryOnce(rng); err != nil {
			t.Fatal(err)
		}
		r.equal("k", "z")
		r.onePerPosition()
		t.Logf("%d kills, %d of them inside the snapshot; %d records", kills()/3, cut, len(r.journal.Records()))
		if cut == 0 {
			t.Error("no kill hit the snapshot")
		}
	})
}

// onePerPosition wants each position once in the journal.
func (r *rig) onePerPosition() {
	r.t.Helper()
	seen := map[string]bool{}
	for _, rec := range r.journal.Records() {
		if seen[rec.Position] {
			r.t.Errorf("the journal has the position %s twice", rec.Position)
		}
		seen[rec.Position] = true
	}
}

// While nothing crashes, a row comes once: as a read, or as what was done to it.
func TestSnapshotAndStreamDoNotRepeat(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.ChunkRows = 50
		r.exec("CREATE TABLE k (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("k", 1, 5000)
		run := r.start(nil)
		for id := 5001; run.source.Report().Phase != "live"; id++ {
			r.exec(fmt.Sprintf("INSERT INTO k VALUES (%d, 'late', 0)", id))
			if run.source.Report().Phase == "connecting" {
				id-- // it must be after the start to be a change
				r.exec(fmt.Sprintf("DELETE FROM k WHERE id = %d", id+1))
			}
		}
		run.stop()
		r.once()
		r.equal("k")
		came := map[string]string{}
		for _, rec := range r.journal.Records() {
			c := r.decode(rec)
			if before, twice := came[string(rec.Key)]; twice && c.Op != "d" && before != "d" {
				t.Fatalf("%s came as %s and as %s", rec.Key, before, c.Op)
			}
			came[string(rec.Key)] = c.Op
		}
	})
}

// A finished snapshot is never read again, whatever is or is not written after.
func TestSnapshotIsTakenOnce(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE k (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("k", 1, 1500)
		for range 4 {
			r.once()
		}
		if n := len(r.changes("k")); n != 1500 {
			t.Errorf("%d records of 1500 rows", n)
		}
	})
}

// The order of keys is the server's, whatever the collation.
func TestSnapshotOfTextKeys(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		collation := "utf8mb4_general_ci"
		r := newRig(t, server)
		r.exec("CREATE TABLE s (id VARCHAR(40) COLLATE "+collation+" PRIMARY KEY, v INT) CHARACTER SET utf8mb4",
			"INSERT INTO s VALUES ('0000',1),('1111',2),('aaaa',3),('bbbb',4),('cccc',5),('ZZZZ',6),('ß',7),('Ü',8),('ñandú',9),('',10),('\\'quote\\\\',11)",
			"CREATE TABLE u (id CHAR(36) COLLATE "+collation+" PRIMARY KEY, v INT) CHARACTER SET utf8mb4")
		rng := rand.New(rand.NewPCG(3, 4))
		for range 10 {
			var rows []string
			for range 2000 {
				id := fmt.Sprintf("%08x-%04x-%04X-%04x-%012X", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<16), rng.IntN(1<<16), rng.Int64N(1<<48))
				rows = append(rows, fmt.Sprintf("('%s',%d)", id, rng.IntN(100)))
			}
			r.exec("INSERT IGNORE INTO u VALUES " + strings.Join(rows, ","))
		}
		stop := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = r.db.Exec(fmt.Sprintf("INSERT IGNORE INTO u VALUES ('%08X-new', 1)", i*7919))
				_, _ = r.db.Exec("UPDATE u SET v = v + 1 WHERE id LIKE ?", fmt.Sprintf("%02x%%", i%256))
			}
		})
		r.cfg.ChunkRows = 2
		r.cfg.Tables = []string{r.name + ".s"}
		r.once()
		r.equal("s")
		r.journal = sourcetest.NewJournal()
		r.cfg.ChunkRows = 1000
		r.cfg.Tables = []string{r.name + ".u"}
		run := r.start(nil)
		r.await("the snapshot", func() bool { return len(r.changes("u")) > 20000 })
		close(stop)
		group.Wait()
		run.stop()
		r.once()
		r.equal("u")
	})
}

// Keys of every kind are read in chunks without loss or repeat.
func TestSnapshotOfAllKinds(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.ChunkRows = 3
		tables := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		r.exec(
			"CREATE TABLE a (x BIGINT UNSIGNED, y VARCHAR(5) CHARACTER SET latin1, z DATE, v INT, PRIMARY KEY (y, x, z))",
			"INSERT INTO a VALUES (18446744073709551615,'é','2024-01-01',1),(0,'é','2024-01-01',2),(1,'e','2024-01-01',3),(1,'e','2023-01-01',4),(1,'e','2025-12-31',5),(9223372036854775808,'z','2024-01-01',6),(1,'z','2024-01-01',7),(2,'z','2024-01-01',8)",
			"CREATE TABLE b (x VARBINARY(8) PRIMARY KEY)", "INSERT INTO b VALUES (''),(0x00),(0x0000),(0x80FF),(0xFF),('a'),('A'),('a ')",
			"CREATE TABLE c (x ENUM('z','b','a','it''s') , y SET('q','p','o'), PRIMARY KEY (x, y))", "INSERT INTO c VALUES ('z',''),('z','q'),('z','q,o'),('b','o'),('a','p'),('a','q,p,o'),('it''s','p'),('it''s','q')",
			"CREATE TABLE d (x BIT(20) PRIMARY KEY)", "INSERT INTO d VALUES (0),(1),(255),(256),(1048575),(1000),(77)",
			"CREATE TABLE e (x DECIMAL(30,10) PRIMARY KEY)", "INSERT INTO e VALUES (0),(-1.5),(12345678901234567890.0123456789),(1),(0.0000000001),(-12345678901234567890.0123456789)",
			"CREATE TABLE f (x DATETIME(6), y TIME(3), PRIMARY KEY (x, y))", "INSERT INTO f VALUES ('2024-01-01 00:00:00.000001','-10:00:00.5'),('2024-01-01 00:00:00.000001','10:00:00.5'),('2024-01-01','0'),('0000-00-00','838:59:59'),('9999-12-31','-838:59:59'),('2024-06-01 12:00:00.5','00:00:01')",
			"CREATE TABLE g (x DOUBLE PRIMARY KEY)", "INSERT INTO g VALUES (0),(0.1),(0.30000000000000004),(-1e300),(1e-300),(5e-324),(1.7976931348623157e308)",
			"CREATE TABLE h (x TIMESTAMP(3), y BINARY(4), w YEAR, PRIMARY KEY (x, y, w))", "INSERT INTO h VALUES ('2024-11-03 05:30:00',0x00,2024),('2024-11-03 05:30:00',0x0001,2024),('2024-11-03 06:30:00','a',0),('2024-11-03 06:30:00','a',1999),('2038-01-19 03:14:07.9','z',2155)",
		)
		r.once()
		r.equal(tables...)
		for _, table := range tables {
			if n, want := len(r.changes(table)), len(r.selected(table)); n != want {
				t.Errorf("%s: %d records of %d rows", table, n, want)
			}
		}
	})
}

// A table whose rows are long is read in chunks of bounded size.
func TestSnapshotOfLongRows(t *testing.T) {
	r := newRig(t, pool.MySQL(t))
	r.exec("CREATE TABLE l (id INT PRIMARY KEY, v LONGTEXT, n INT)", "INSERT INTO l VALUES (1, '', 0)")
	for i := 2; i <= 30; i++ {
		r.exec(fmt.Sprintf("INSERT INTO l VALUES (%d, REPEAT('%c', 1500000), 0)", i, 'a'+i%26))
	}
	r.once()
	r.equal("l")
}

// A table that the configuration takes in later is read then.
func TestTablesAddedToTheConfiguration(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("a", 1, 100)
		r.insertRows("b", 1, 100)
		r.cfg.Tables = []string{r.name + ".a"}
		r.once()
		r.exec("UPDATE a SET n = n + 1", "UPDATE b SET n = n + 1")
		r.cfg.Tables = []string{r.name + ".*"}
		r.once()
		r.equal("a", "b")
		r.exec("UPDATE a SET n = n + 1", "UPDATE b SET n = n + 1", "DELETE FROM b WHERE id < 50")
		r.once()
		r.equal("a", "b")
		if n := len(r.changes("a")); n != 300 {
			t.Errorf("%d records of a, want 300: it was read again", n)
		}
	})
}
