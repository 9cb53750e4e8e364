package mysql_test

import (
	"encoding/json"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// shape is a table, or some, and statements that public reports say were followed wrongly.
type shape struct {
	name   string
	flavor string // where only one has such statements
	tables []string
	setup  []string
	steps  []string
}

var shapes = []shape{
	{name: "two columns swap names", tables: []string{"swapped"}, setup: []string{"CREATE TABLE swapped (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), c INT)", "INSERT INTO swapped VALUES (1,'a','b',0)"},
		steps: []string{"ALTER TABLE swapped RENAME COLUMN a TO b, RENAME COLUMN b TO a", "INSERT INTO swapped VALUES (2,'x','y',0)", "UPDATE swapped SET c = 1"}},
	{name: "names go round, and one is AFTER a name to be", tables: []string{"round"}, setup: []string{"CREATE TABLE round (id INT PRIMARY KEY, a INT, b INT, c INT)", "INSERT INTO round VALUES (1,1,2,3)"},
		steps: []string{"ALTER TABLE round ADD n INT DEFAULT 9 AFTER z, CHANGE a b INT, CHANGE b a INT AFTER n, RENAME COLUMN c TO z", "INSERT INTO round VALUES (2,3,4,5,6)", "UPDATE round SET z = 7"}},
	{name: "a column is dropped and made anew", tables: []string{"anew"}, setup: []string{"CREATE TABLE anew (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO anew VALUES (1,1,2)"},
		steps: []string{"ALTER TABLE anew ADD COLUMN b INT DEFAULT 8 FIRST, DROP COLUMN b", "INSERT INTO anew VALUES (2,3,4)", "UPDATE anew SET a = 7, b = 9"}},
	{name: "the key's columns swap names", tables: []string{"keyswap"}, setup: []string{"CREATE TABLE keyswap (a INT PRIMARY KEY, b INT)", "INSERT INTO keyswap VALUES (1,10)"},
		steps: []string{"ALTER TABLE keyswap RENAME COLUMN a TO b, RENAME COLUMN b TO a", "INSERT INTO keyswap VALUES (2,20)"}},
	{name: "AFTER behind REFERENCES", tables: []string{"refers"}, setup: []string{"CREATE TABLE refers (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO refers VALUES (1,1,1)"},
		steps: []string{"ALTER TABLE refers ADD c INT REFERENCES refers (id) ON DELETE RESTRICT AFTER a", "INSERT INTO refers VALUES (2,2,NULL,3)", "UPDATE refers SET b = 7, c = 1"}},
	{name: "AFTER behind COLUMN_FORMAT", flavor: "mysql", tables: []string{"formatted"}, setup: []string{"CREATE TABLE formatted (id INT PRIMARY KEY, a INT, b INT)"},
		steps: []string{"ALTER TABLE formatted ADD c INT COLUMN_FORMAT DEFAULT AFTER a", "INSERT INTO formatted VALUES (2,2,4,3)"}},
	{name: "several options in one part", tables: []string{"options"}, setup: []string{"CREATE TABLE options (id INT PRIMARY KEY, a TEXT) CHARACTER SET utf8mb4"},
		steps: []string{"ALTER TABLE options ENGINE=InnoDB DEFAULT CHARSET=latin1", "ALTER TABLE options ADD b TEXT", "INSERT INTO options VALUES (2,'é','é')"}},
	{name: "CONVERT TO CHARACTER SET, and more behind it", tables: []string{"converted"}, setup: []string{"CREATE TABLE converted (id INT PRIMARY KEY, a TEXT, v VARCHAR(10), tt TINYTEXT, e ENUM('é','b')) CHARACTER SET latin1", "INSERT INTO converted VALUES (1,'é','é','é','é')"},
		steps: []string{"INSERT INTO converted VALUES (2,'é','é','é','é')", "ALTER TABLE converted CONVERT TO CHARACTER SET utf8mb4, ADD x TEXT", "INSERT INTO converted VALUES (3,'é😀','é','é','é','ü')", "ALTER TABLE converted ADD y INT", "UPDATE converted SET y = 1"}},
	{name: "EXCHANGE PARTITION changes both tables", tables: []string{"parted", "parked_rows"}, setup: []string{"CREATE TABLE parted (id INT PRIMARY KEY, a INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
		"INSERT INTO parted VALUES (1,1),(20,20)", "CREATE TABLE parked_rows (id INT PRIMARY KEY, a INT)", "INSERT INTO parked_rows VALUES (2,2),(3,3)"},
		steps: []string{"ALTER TABLE parted EXCHANGE PARTITION p0 WITH TABLE parked_rows", "INSERT INTO parted VALUES (4,4)", "INSERT INTO parked_rows VALUES (5,5)"}},
	{name: "partitions become tables, and tables partitions", flavor: "mariadb", tables: []string{"whole", "part"}, setup: []string{"CREATE TABLE whole (id INT PRIMARY KEY, a INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
		"INSERT INTO whole VALUES (1,1),(11,11)", "CREATE TABLE joins (id INT PRIMARY KEY, a INT)", "INSERT INTO joins VALUES (21,2),(22,3)"},
		steps: []string{"ALTER TABLE whole CONVERT PARTITION p0 TO TABLE part", "ALTER TABLE whole CONVERT TABLE joins TO PARTITION p2 VALUES LESS THAN (30)", "INSERT INTO whole VALUES (24,4)", "INSERT INTO part VALUES (5,5)"}},
	{name: "ALTER IGNORE drops rows", flavor: "mariadb", tables: []string{"ignored"}, setup: []string{"CREATE TABLE ignored (id INT PRIMARY KEY, a INT)", "INSERT INTO ignored VALUES (1,1),(2,1),(3,3)"},
		steps: []string{"ALTER IGNORE TABLE ignored ADD UNIQUE (a)", "INSERT INTO ignored VALUES (4,4)"}},
	{name: "two tables swap names", tables: []string{"left_one", "right_one"}, setup: []string{"CREATE TABLE left_one (id INT PRIMARY KEY, a INT)", "INSERT INTO left_one VALUES (1,1),(2,2)", "CREATE TABLE right_one (id INT PRIMARY KEY, a INT)", "INSERT INTO right_one VALUES (2,20),(3,30)"},
		steps: []string{"RENAME TABLE left_one TO other, right_one TO left_one, other TO right_one", "INSERT INTO left_one VALUES (4,4)", "INSERT INTO right_one VALUES (5,5)"}},
	{name: "the key's values are written otherwise", tables: []string{"typed", "timed", "padded"}, setup: []string{"CREATE TABLE typed (id INT PRIMARY KEY, b INT)", "INSERT INTO typed VALUES (1,11),(2,12)", "CREATE TABLE timed (id DATETIME PRIMARY KEY, b INT)", "INSERT INTO timed VALUES ('2024-01-02 03:04:05',11)", "CREATE TABLE padded (id BINARY(4) PRIMARY KEY, b INT)", "INSERT INTO padded VALUES ('abcd',1)"},
		steps: []string{"ALTER TABLE typed MODIFY id VARCHAR(20)", "UPDATE typed SET b = 5", "DELETE FROM typed WHERE id = '2'", "ALTER TABLE timed MODIFY id DATETIME(3)", "UPDATE timed SET b = 3", "ALTER TABLE padded MODIFY id BINARY(6)", "UPDATE padded SET b = 3"}},
	{name: "a ghost that could not be followed has another key", tables: []string{"ghosted"}, setup: []string{"CREATE TABLE ghosted (id INT PRIMARY KEY, b INT NOT NULL)", "INSERT INTO ghosted VALUES (1,11),(2,12)"},
		steps: []string{"CREATE TABLE _ghosted_gho LIKE ghosted", "ALTER TABLE _ghosted_gho DROP PRIMARY KEY, ADD PRIMARY KEY (b), CONVERT TO CHARACTER SET DEFAULT", "INSERT INTO _ghosted_gho SELECT * FROM ghosted",
			"RENAME TABLE ghosted TO _ghosted_del, _ghosted_gho TO ghosted", "INSERT INTO ghosted VALUES (3,13)"}},
	{name: "a dot in the name", tables: []string{"a.b"}, setup: []string{"CREATE TABLE `a.b` (id INT PRIMARY KEY, `x.y` INT)", "INSERT INTO `a.b` VALUES (1,1)"}, steps: []string{"INSERT INTO `a.b` VALUES (2,2)"}},
}

// What a statement does to columns, keys and rows is what the server does: the parts of an
// ALTER TABLE speak of the columns before it, and statements that move rows without
// logging them have their tables read anew. Promise 2.
func TestShapesOfStatements(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		mine := func(s shape) bool { return s.flavor == "" || s.flavor == server.Flavor }
		for _, s := range shapes {
			if mine(s) {
				r.exec(s.setup...)
			}
		}
		r.once()
		for _, s := range shapes {
			if mine(s) {
				r.exec(s.steps...)
			}
		}
		r.once()
		for _, s := range shapes {
			if mine(s) {
				t.Run(s.name, func(t *testing.T) {
					for _, table := range s.tables {
						if diff := r.diff(table); diff != "" {
							t.Errorf("%s: %s", table, diff)
						}
					}
				})
			}
		}
		if left := r.state("joins"); len(left) != 0 {
			t.Errorf("rows of a table that became a partition are left: %v", left)
		}
	})
}

// Where the log does not say a column's character set, a table that took its database's is
// not read by the one that the database has now.
func TestCharacterSetOfTheDatabaseThen(t *testing.T) {
	t.Parallel()
	r := newRig(t, pool.MariaDB(t))
	r.exec("CREATE TABLE t (id INT PRIMARY KEY)")
	r.once()
	r.exec("ALTER DATABASE CHARACTER SET latin1", "CREATE TABLE l (id INT PRIMARY KEY, a TEXT)", "INSERT INTO l VALUES (1,'é')",
		"ALTER DATABASE CHARACTER SET utf8mb4", "CREATE TABLE m (id INT PRIMARY KEY, a TEXT)", "INSERT INTO m VALUES (1,'é')", "INSERT INTO l VALUES (2,'ü')")
	r.once()
	r.equal("l", "m")
}

// A unique key that comes to allow NULL names no row any more; one that takes another's
// place renames them all, also where the statement could not be followed.
func TestUniqueKeysThatChange(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE u (a INT NOT NULL, b INT NOT NULL, UNIQUE uk (a))", "INSERT INTO u VALUES (1,11),(2,12)",
			"CREATE TABLE n (a INT NOT NULL, b INT, UNIQUE uk (a))", "INSERT INTO n VALUES (1,1)")
		r.once()
		r.exec("ALTER TABLE u DROP INDEX uk, ADD UNIQUE uk2 (b)", "INSERT INTO u VALUES (1,13)", "UPDATE u SET a = 5 WHERE b = 11")
		r.once()
		if got := r.state("u"); len(got) != 3 || got[`{"b":11}`]["a"] != json.Number("5") {
			t.Errorf("under the new key: %v", got)
		}
		r.exec("ALTER TABLE n MODIFY a INT NULL", "INSERT INTO n VALUES (NULL,3),(NULL,4)")
		r.wantStop("no-primary-key")
	})
}
