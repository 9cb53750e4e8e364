package mysql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// afters returns the after images of a table's changes, in order, as text.
func (r *rig) afters(table string) []string {
	r.t.Helper()
	var list []string
	for _, c := range r.changes(table) {
		list = append(list, fmt.Sprintf("%s %v", c.Op, c.After))
	}
	return list
}

func (r *rig) wantAfters(table string, want ...string) {
	r.t.Helper()
	got := r.afters(table)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.t.Errorf("%s: got\n  %s\nwant\n  %s", table, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Each row is decoded by the definition valid at its place, however many changes
// of it the backlog holds. Promise 2.
func TestBacklogOfDefinitions(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE d (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), c VARCHAR(9), e VARCHAR(9))")
		r.once()
		r.exec("INSERT INTO d VALUES (1,'a1','b1','c1','e1')",
			"ALTER TABLE d ADD COLUMN m VARCHAR(9) DEFAULT 'dm' AFTER b",
			"INSERT INTO d VALUES (2,'a2','b2','m2','c2','e2')",
			"ALTER TABLE d DROP COLUMN a",
			"INSERT INTO d VALUES (3,'b3','m3','c3','e3')",
			"ALTER TABLE d RENAME COLUMN c TO cc",
			"INSERT INTO d VALUES (4,'b4','m4','cc4','e4')",
			"ALTER TABLE d ADD (x INT UNSIGNED NOT NULL DEFAULT 4294967295, y BIGINT UNSIGNED DEFAULT 18446744073709551615), ADD COLUMN f TINYINT FIRST, CHANGE e ee CHAR(5) AFTER id",
			"INSERT INTO d (id, ee) VALUES (5,'ee5')",
			"ALTER TABLE d MODIFY m VARCHAR(20) CHARACTER SET latin1 FIRST, DROP b, ALTER cc SET DEFAULT 'q', ADD INDEX i1 (x), COMMENT='it''s, DROP COLUMN x'",
			"INSERT INTO d (id, m) VALUES (6,'é')",
		)
		r.once()
		r.wantAfters("d",
			"c map[a:a1 b:b1 c:c1 e:e1 id:1]",
			"c map[a:a2 b:b2 c:c2 e:e2 id:2 m:m2]",
			"c map[b:b3 c:c3 e:e3 id:3 m:m3]",
			"c map[b:b4 cc:cc4 e:e4 id:4 m:m4]",
			"c map[b:<nil> cc:<nil> ee:ee5 f:<nil> id:5 m:dm x:4294967295 y:18446744073709551615]",
			"c map[cc:q ee:<nil> f:<nil> id:6 m:é x:4294967295 y:18446744073709551615]")
	})
}

// Values of ENUM and SET are those of their time.
func TestBacklogOfEnumDefinitions(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE e (id INT PRIMARY KEY, s ENUM('new','paid','void'), f SET('a','b'))", "INSERT INTO e VALUES (1,'paid','b')")
		r.once()
		r.exec("INSERT INTO e VALUES (2,'paid','b')",
			"ALTER TABLE e MODIFY s ENUM('new','held','paid','void'), MODIFY COLUMN f SET('z','a','bc'' \\\\x','b')",
			"INSERT INTO e VALUES (3,'paid','a,b'), (4,'held','z')", "UPDATE e SET s = 'void' WHERE id = 1")
		r.once()
		r.equal("e")
		r.wantAfters("e", "r map[f:b id:1 s:paid]", "c map[f:b id:2 s:paid]", "c map[f:a,b id:3 s:paid]", "c map[f:z id:4 s:held]", "u map[f:b id:1 s:void]")
	})
}

// Names and labels of clients that speak another character set are what the server
// makes of them, and a backlog of their statements is followed like any other.
func TestStatementsInOtherCharacterSets(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE l (id INT PRIMARY KEY, v INT)")
		r.once()
		c, err := r.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, charset := range []string{"latin1", "cp1251", "utf8mb4"} {
			letter := []string{"\xe9", "\xe9", "é"}[i]
			for _, q := range []string{
				"SET NAMES " + charset,
				fmt.Sprintf("ALTER TABLE l ADD `%s%s` ENUM('%[2]s','x') NOT NULL DEFAULT 'x' COMMENT '%[2]s'", charset, letter),
				fmt.Sprintf("INSERT INTO l (id, `%s%s`) VALUES (%d, '%[2]s')", charset, letter, i),
				"SET NAMES utf8mb4",
			} {
				if _, err := c.ExecContext(t.Context(), q); err != nil {
					t.Fatalf("%q: %v", q, err)
				}
			}
		}
		r.once()
		r.wantAfters("l", "c map[id:0 latin1é:é v:<nil>]", "c map[cp1251й:й id:1 latin1é:x v:<nil>]",
			"c map[cp1251й:x id:2 latin1é:x utf8mb4é:é v:<nil>]")
		r.exec("UPDATE l SET v = id + 1")
		r.once()
		r.equal("l")
	})
}

// A name that the server can't keep as it was given is the one that it kept, and the
// letters' case of a key's column is part of the key.
func TestNamesAreThoseThatTheServerKeeps(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE k (id INT PRIMARY KEY, a INT)", "INSERT INTO k VALUES (1, 1)")
		r.once()
		r.exec("ALTER TABLE k CHANGE id Id INT", "INSERT INTO k VALUES (2, 2)")
		if server.Flavor == "mysql" { // MariaDB refuses such names
			r.exec("ALTER TABLE k RENAME COLUMN a TO `a🎉b`", "INSERT INTO k VALUES (3, 3)", "UPDATE k SET `a🎉b` = `a🎉b` + 1")
		}
		r.once()
		r.equal("k")
	})
}

// Statements that no parser of ours knows never stop the stream, and captured
// tables stay right.
func TestStatementsThatPass(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE p (id INT PRIMARY KEY, c VARCHAR(20) NOT NULL DEFAULT 'x', v INT)", "INSERT INTO p VALUES (1,'a',1)")
		statements := []string{
			"ALTER TABLE p MODIFY c VARCHAR(21) NOT NULL DEFAULT 'x' CHECK (c <> '')",
			"ALTER DATABASE CHARACTER SET = utf8mb4", "FLUSH TABLE p", "FLUSH TABLES",
			"ALTER TABLE p ADD COLUMN cur VARCHAR(20) DEFAULT (CURRENT_DATE())", "ALTER TABLE p DROP COLUMN cur",
			"ALTER TABLE p AUTO_INCREMENT=1", "ALTER TABLE p ADD w VARCHAR(9) DEFAULT _utf8mb4''",
			"ALTER TABLE p ADD COLUMN (n1 DECIMAL(10, 2) DEFAULT 1.5 COMMENT 'a, b) c', n2 SET('x)y','z') DEFAULT 'x)y')",
			"CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
			"INSERT INTO parts VALUES (1,1),(11,11)", "ALTER TABLE parts REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)",
			"ALTER TABLE parts TRUNCATE PARTITION p0", "ALTER TABLE parts DROP PARTITION p1", "INSERT INTO parts VALUES (2,2)",
			"ANALYZE TABLE p", "OPTIMIZE TABLE p", "CREATE VIEW vw AS SELECT * FROM p", "DROP VIEW vw",
			"CREATE TRIGGER tr BEFORE INSERT ON p FOR EACH ROW SET NEW.v = NEW.v + 1", "DROP TRIGGER tr",
			"CREATE PROCEDURE pr() BEGIN DROP TABLE IF EXISTS p; END", "DROP PROCEDURE pr",
			"CREATE TABLE other (id INT PRIMARY KEY) COMMENT 'DROP TABLE p'", "CREATE TABLE IF NOT EXISTS p (different INT)",
			"CREATE TEMPORARY TABLE p2 (id INT)", "DROP TEMPORARY TABLE p2",
			"CREATE INDEX ix ON p (v)", "DROP INDEX ix ON p", "ALTER TABLE p RENAME INDEX `PRIMARY` TO `PRIMARY`",
			"/* a comment */ ALTER /* another */ TABLE p -- and one more\n ADD z1 INT /*!40101 DEFAULT 7 */ # end",
			"ALTER TABLE `p` ADD COLUMN `we``ird, name` INT AFTER id, ADD UNIQUE KEY uk (c), ALGORITHM=INPLACE, LOCK=NONE",
			"ALTER TABLE p ADD CONSTRAINT ck CHECK (v < 1000000), ENGINE=InnoDB", "ALTER TABLE p ADD gen INT GENERATED ALWAYS AS (v * 2) STORED, ADD gen2 INT AS (v + 1)",
		}
		if server.Flavor == "mysql" {
			statements = append(statements,
				"ALTER TABLE p MODIFY c VARCHAR(22) NOT NULL CONSTRAINT x CHECK (c<>'')",
				"CREATE USER tmp_"+r.name+"@'%' IDENTIFIED BY 'a'", "ALTER USER tmp_"+r.name+"@'%' IDENTIFIED BY 'b' RETAIN CURRENT PASSWORD", "DROP USER tmp_"+r.name+"@'%'",
				"CREATE ROLE ro_"+r.name, "DROP ROLE ro_"+r.name, "ALTER TABLE p MODIFY "+r.name+".p.v BIGINT", "ALTER TABLE p ADD dc INT", "ALTER TABLE p DROP COLUMN dc CASCADE",
				"ALTER TABLE p ADD inv INT INVISIBLE DEFAULT 5, ALTER COLUMN w SET INVISIBLE", "ANALYZE TABLE p UPDATE HISTOGRAM ON v WITH 10 BUCKETS",
				"CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'Greek' DEFINITION 'GEOGCS[\"Greek\",DATUM[\"Greek\",SPHEROID[\"Bessel 1841\",6377397.155,299.1528128,AUTHORITY[\"EPSG\",\"7004\"]],AUTHORITY[\"EPSG\",\"6120\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.017453292519943278,AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST],AUTHORITY[\"EPSG\",\"4120\"]]'",
				"DROP SPATIAL REFERENCE SYSTEM 4120", "ALTER TABLE p ADD INDEX fx ((v + 1))", "CREATE TABLE ctas (PRIMARY KEY (id)) SELECT id, c FROM p", "INSERT INTO ctas VALUES (99, 'z')",
			)
		} else {
			statements = append(statements,
				"ALTER TABLE IF EXISTS p ADD COLUMN IF NOT EXISTS v INT", "ALTER TABLE p ADD COLUMN IF NOT EXISTS ex INT", "ALTER TABLE p DROP COLUMN IF EXISTS nothing", "ALTER TABLE p WAIT 5 ADD wt INT",
				"SET STATEMENT max_statement_time=60 FOR ALTER TABLE p ADD st INT", "CREATE OR REPLACE TABLE orr (id INT PRIMARY KEY, u INT)", "INSERT INTO orr VALUES (1,1)",
				"CREATE OR REPLACE TABLE orr (id INT PRIMARY KEY, w VARCHAR(9), u INT)", "INSERT INTO orr VALUES (2,'x',2)", "CREATE SEQUENCE sq", "ALTER TABLE p ADD per INT AS (v + 1) PERSISTENT",
				"CREATE TABLE ctas (PRIMARY KEY (id)) SELECT id, c FROM p", "INSERT INTO ctas VALUES (99, 'z')", "ALTER TABLE p ADD inv INT INVISIBLE DEFAULT 5",
				"CREATE TABLE uca (id VARCHAR(9) COLLATE utf8mb4_unicode_ci PRIMARY KEY, v INT)", "INSERT INTO uca VALUES ('ü',1)",
			)
		}
		run := r.start(nil)
		r.await("the snapshot", func() bool { return len(r.changes("p")) > 0 })
		for i, s := range statements {
			r.execLoosely(s)
			r.exec(fmt.Sprintf("INSERT INTO p (id, c, v) VALUES (%d, 'c%d', %d)", 1000+i, i, i), fmt.Sprintf("UPDATE p SET v = v + 1 WHERE id = %d", 1000+i/2))
		}
		tables := []string{"p", "parts", "ctas", "other"}
		if server.Flavor == "mariadb" {
			tables = append(tables, "orr", "uca")
		}
		r.exec("INSERT INTO other VALUES (1)")
		r.await("the last change", func() bool {
			select {
			case <-run.done:
				t.Fatalf("Run ended: %v", run.err)
			default:
			}
			return len(r.state("other")) == 1
		})
		run.stop()
		r.once()
		for _, table := range tables {
			r.equalSinceChange(table)
		}
	})
}

// execLoosely runs a statement that this version of the server may not know.
func (r *rig) execLoosely(q string) {
	r.t.Helper()
	if _, err := r.db.ExecContext(context.Background(), q); err != nil {
		r.t.Logf("the server does not take %.80q: %v", q, err)
	}
}

// equalSinceChange compares after every row was touched once more: columns that DDL
// adds don't reach rows that nothing changes.
func (r *rig) equalSinceChange(table string) {
	r.t.Helper()
	columns, _ := r.columns(table)
	for _, c := range columns {
		if c.kind == "int" && c.name != "id" || c.kind == "bigint" {
			r.execLoosely(fmt.Sprintf("UPDATE %s SET %s = COALESCE(%[2]s, 0) + 1", table, quoted(c.name)))
		}
	}
	r.once()
	r.equal(table)
}

// An online change of the schema ends by swapping two tables.
func TestOnlineSchemaChange(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		for _, backlog := range []bool{false, true} {
			t.Run(fmt.Sprint("backlog ", backlog), func(t *testing.T) {
				r := newRig(t, server)
				r.cfg.Tables = []string{r.name + ".t"}
				r.exec("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1,'one'),(2,'two')")
				r.once()
				step := func() {
					if !backlog {
						r.once()
					}
				}
				for n := range 2 {
					column := fmt.Sprintf("c%d", n)
					r.exec("CREATE TABLE _t_gho LIKE t", fmt.Sprintf("ALTER TABLE _t_gho ADD COLUMN %s INT NOT NULL DEFAULT %d AFTER id, MODIFY v VARCHAR(30)", column, n))
					step()
					r.exec("INSERT INTO _t_gho (id, v) SELECT id, v FROM t", "UPDATE t SET v = CONCAT(v, '!')", "UPDATE _t_gho SET v = CONCAT(v, '!')", fmt.Sprintf("INSERT INTO t (id, v) VALUES (%d, 'w')", 10+n), fmt.Sprintf("INSERT INTO _t_gho (id, v) VALUES (%d, 'w')", 10+n))
					step()
					r.exec("RENAME TABLE t TO _t_del, _t_gho TO t")
					step()
					r.exec(fmt.Sprintf("INSERT INTO t (id, v) VALUES (%d, 'after')", 20+n), "DROP TABLE _t_del", "UPDATE t SET v = CONCAT(v, '?')")
				}
				r.once()
				r.equal("t")
				for _, rec := range r.journal.Records() {
					if rec.Table != r.name+".t" {
						t.Fatalf("a record of %s", rec.Table)
					}
					if c := r.decode(rec); c.Op == "t" {
						t.Error("the swap emptied the table")
					}
				}
			})
		}
	})
}

// A rename into a captured name brings rows that no change showed.
func TestRenameIntoACapturedName(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.Tables = []string{r.name + ".t*"}
		r.exec("CREATE TABLE t1 (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t1 VALUES (1,'one')",
			"CREATE TABLE staging (id INT PRIMARY KEY, w INT UNSIGNED)", "INSERT INTO staging VALUES (5,4294967295),(6,6)")
		r.once()
		r.exec("UPDATE t1 SET v = 'uno'", "RENAME TABLE staging TO t2", "INSERT INTO t2 VALUES (7,7)", "ALTER TABLE t1 RENAME TO t3", "INSERT INTO t3 VALUES (2,'two')")
		r.once()
		r.equal("t2", "t3")
		if n := len(r.state("t1")); n != 0 {
			t.Errorf("%d rows of a table that was renamed are left", n)
		}
		r.exec("RENAME TABLE t2 TO away")
		r.once()
		if n := len(r.state("t2")); n != 0 {
			t.Errorf("%d rows of a table that was renamed are left", n)
		}
	})
}

// Rows that go without a trace in the log go at the sinks too.
func TestTruncateAndDrop(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		create := "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT)"
		r.exec(create, "INSERT INTO t VALUES (1,'a',1),(2,'b',2)")
		r.once()
		r.exec("INSERT INTO t VALUES (3,'c',3)", "TRUNCATE t", "INSERT INTO t VALUES (2,'again',2)")
		r.once()
		r.equal("t")
		r.exec("DROP TABLE t", "CREATE TABLE t (id INT, k INT, PRIMARY KEY (k))", "INSERT INTO t VALUES (2,20),(1,10)")
		r.once()
		r.equal("t")
		r.exec("TRUNCATE TABLE `t`", create[:13]+"u"+create[14:], "INSERT INTO u VALUES (1,'x',1)", "DROP TABLE t, u", create, "INSERT INTO t VALUES (9,'z',9)")
		r.once()
		r.equal("t")
		if n := len(r.state("u")); n != 0 {
			t.Errorf("%d rows of a dropped table are left", n)
		}
		r.exec("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "INSERT INTO t VALUES (10,'y',10)")
		r.once()
		r.equal("t")
	})
}

func TestTruncatePolicies(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.Truncate = "ignore"
		r.exec("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT)", "INSERT INTO t VALUES (1,'a',1)")
		r.once()
		r.exec("TRUNCATE t", "INSERT INTO t VALUES (2,'b',2)")
		r.once()
		r.wantAfters("t", "r map[id:1 n:1 v:a]", "c map[id:2 n:2 v:b]")
		r.cfg.Truncate = "stop"
		r.exec("DROP TABLE t")
		r.wantStop("table-emptied")
		r.cfg.Truncate = "propagate"
		r.once()
		if n := len(r.state("t")); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
