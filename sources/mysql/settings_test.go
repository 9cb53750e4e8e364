package mysql_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// newYork is the server's table of the zone, for the year of the test.
var newYork = []string{
	"INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (77, 'N')",
	"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('America/New_York', 77)",
	"INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) VALUES (77, 0, -18000, 0, 'EST'), (77, 1, -14400, 1, 'EDT')",
	// 2023-11-05, 2024-03-10 and 2024-11-03, each at 2 in the morning
	"INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (77, 1699164000, 0), (77, 1710054000, 1), (77, 1730613600, 0)",
}

// An instant is the same instant and a wall clock the same wall clock in both phases,
// whatever the server's zone, on the days that have 23 and 25 hours too.
func TestServerInNewYork(t *testing.T) {
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			// Nor do the server's defaults for sessions change what the source's own read.
			r := newRig(t, start(t, services.Options{Args: []string{"--transaction-isolation=READ-UNCOMMITTED",
				"--init-connect=SET autocommit = IF(USER() LIKE 'repl%', 0, 1), sql_select_limit = IF(USER() LIKE 'repl%', 2, 1000000)"}}))
			r.exec(newYork...)
			r.exec("SET GLOBAL time_zone = 'America/New_York'", "CREATE TABLE z (id INT AUTO_INCREMENT PRIMARY KEY, ts TIMESTAMP(6) NULL, dt DATETIME(6), made TIMESTAMP DEFAULT CURRENT_TIMESTAMP, n INT DEFAULT 0)")
			there := r.open("") // in the server's zone
			write := func() {
				t.Helper()
				for _, at := range []string{"2024-11-03 00:59:59.999999", "2024-11-03 01:30:00", "2024-11-03 02:30:00.5", "2024-03-10 01:59:59.999999", "2024-03-10 03:00:00", "2024-07-04 12:00:00"} {
					if _, err := there.ExecContext(t.Context(), "INSERT INTO z (ts, dt) VALUES (?, ?)", at, at); err != nil {
						t.Fatal(err)
					}
				}
				// The hour that comes twice, and the one that there is not.
				r.exec("INSERT INTO z (ts, dt) VALUES ('2024-11-03 05:30:00.25','2024-11-03 01:30:00.25'), ('2024-11-03 06:30:00.25','2024-11-03 01:30:00.25'), (NULL,'2024-03-10 02:30:00')")
			}
			write()
			r.once()
			r.equal("z")
			if got, want := r.changes("z")[1].After["ts"], "2024-11-03 05:30:00.000000"; got != want {
				t.Errorf("half past one in New York is %v, want %s in UTC", got, want)
			}
			if _, err := there.ExecContext(t.Context(), "UPDATE z SET n = n + 1"); err != nil {
				t.Fatal(err)
			}
			write()
			r.once()
			r.equal("z")
			r.exec("UPDATE z SET n = n + 1")
			r.once()
			r.equal("z")
			r.exec("SET GLOBAL require_secure_transport = ON")
			code := map[string]string{"mysql": "tls-required", "mariadb": "access-denied"}[flavor]
			if stop := r.wantStop(code); !strings.Contains(stop.Fix, "tls.mode") {
				t.Errorf("the fix is %q", stop.Fix)
			}
			r.exec("SET GLOBAL require_secure_transport = OFF")
		})
	}
}

// Where the server folds the names of tables, any case of a name means the same table: in
// the configuration, in statements and in rows.
func TestFoldedTableNames(t *testing.T) {
	server := services.MariaDBForTest(t, services.Options{Args: []string{"--lower-case-table-names=1"}})
	r := newRig(t, server)
	r.cfg.Tables = []string{strings.ToUpper(r.name) + ".OrD*", "!" + r.name + ".Orders_OLD"}
	r.exec("CREATE TABLE Orders (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO ORDERS VALUES (1,'a'),(2,'b')", "CREATE TABLE Orders_Old (id INT PRIMARY KEY)", "INSERT INTO Orders_Old VALUES (1)",
		"CREATE TABLE OrdNoKey (id INT)")
	run := r.start(nil)
	r.live(run)
	if got, want := run.parked(), "ordnokey no-primary-key"; got != want {
		t.Errorf("parked: %q, want %q", got, want)
	}
	r.exec("ALTER TABLE oRDERS ADD COLUMN n INT DEFAULT 4 AFTER id", "INSERT INTO orderS VALUES (3,3,'c')", "UPDATE Orders SET n = 5, v = 'z'",
		"CREATE TABLE ORDERS2 LIKE Orders", "INSERT INTO Orders2 VALUES (1,1,'x')", "ALTER TABLE ORDNOKEY ADD PRIMARY KEY (ID)", "INSERT INTO OrdNoKey VALUES (5)",
		"CREATE TABLE `ORD Gone` (id INT PRIMARY KEY)", "INSERT INTO `Ord gone` VALUES (1)", "DROP TABLE `oRD gONE`", "INSERT INTO orders_OLD VALUES (9)", "INSERT INTO orders VALUES (4,4,'d')")
	r.reaches(run, "orders", "orders2", "ordnokey")
	run.stop()
	if n := len(r.state("ord gone")); n != 0 {
		t.Errorf("%d rows of a dropped table are left", n)
	}
	if n := len(r.changes("orders_old")); n != 0 {
		t.Errorf("%d records of an excluded table", n)
	}
}

// Tables are swapped by triggers and a rename, as pt-online-schema-change does,
// while the snapshot reads and others write. What the snapshot had read before lacks the
// new column; everything else is right at once.
func TestOnlineSchemaChangeDuringTheSnapshot(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.ChunkRows = 10
		r.cfg.Tables = []string{r.name + ".t"}
		r.exec("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("t", 1, 3000)
		run := r.start(nil)
		stopWriters := r.writers("t", 2, 4000)
		during := 0
		for round := range 2 {
			before := len(r.changes("t"))
			r.await("the snapshot to go on", func() bool { r.alive(run); return len(r.changes("t")) > before+100 })
			r.exec("CREATE TABLE _new LIKE t", fmt.Sprintf("ALTER TABLE _new MODIFY v VARCHAR(60), ADD COLUMN c%d INT INVISIBLE DEFAULT %[1]d FIRST", round))
			for _, q := range []string{
				"CREATE TRIGGER ins AFTER INSERT ON t FOR EACH ROW REPLACE INTO _new (id, v, n) VALUES (NEW.id, NEW.v, NEW.n)",
				"CREATE TRIGGER upd AFTER UPDATE ON t FOR EACH ROW BEGIN DELETE FROM _new WHERE id = OLD.id AND OLD.id <> NEW.id; REPLACE INTO _new (id, v, n) VALUES (NEW.id, NEW.v, NEW.n); END",
				"CREATE TRIGGER del AFTER DELETE ON t FOR EACH ROW DELETE FROM _new WHERE id = OLD.id",
			} {
				r.untilDone(q)
			}
			for from := 0; from <= 4000; from += 500 {
				r.untilDone(fmt.Sprintf("INSERT IGNORE INTO _new (id, v, n) SELECT id, v, n FROM t WHERE id > %d AND id <= %d LOCK IN SHARE MODE", from, from+500))
			}
			r.untilDone("RENAME TABLE t TO _old, _new TO t")
			if run.source.Report().Phase == "snapshot" {
				during++
			}
			r.exec("DROP TABLE _old")
		}
		r.live(run)
		stopWriters()
		run.stop()
		if during == 0 {
			t.Error("the snapshot was over before a swap")
		}
		r.once()
		got, want := r.state("t"), r.selected("t")
		for key, row := range want {
			if g := got[key]; g == nil || g["v"] != row["v"] || g["n"] != row["n"] {
				t.Errorf("%s: got %v, SELECT shows %v\n%s", key, g, row, r.history("t", key))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
		r.exec("UPDATE t SET n = n + 1")
		r.once()
		r.equal("t")
	})
}

// untilDone runs a statement again until no deadlock ends it.
func (r *rig) untilDone(q string) {
	r.t.Helper()
	r.await(q, func() bool {
		_, err := r.db.ExecContext(context.Background(), q)
		if err != nil && rand.IntN(20) == 0 {
			r.t.Logf("again: %v", err)
		}
		return err == nil
	})
}
