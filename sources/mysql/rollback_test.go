package mysql_test

import (
	"encoding/json"
	"testing"
)

// Rows that the log has although they were rolled back never were, at no sink, and those
// of tables without transactions stand.
func TestRowsThatWereRolledBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, pool.MariaDB(t)) // MySQL with GTIDs refuses such transactions, or does not log them
	r.db.SetMaxOpenConns(1)         // for the temporary tables
	r.exec("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE TABLE m (id INT PRIMARY KEY, a INT) ENGINE=MyISAM", "INSERT INTO t VALUES (1,1),(50,0)")
	r.once()
	r.exec("CREATE TEMPORARY TABLE x1 (id INT); CREATE TEMPORARY TABLE x2 (id INT); CREATE TEMPORARY TABLE x3 (id INT)",
		"BEGIN; INSERT INTO t VALUES (2,2); DROP TEMPORARY TABLE x1; ROLLBACK",
		"BEGIN; INSERT INTO t VALUES (4,4); SAVEPOINT s; INSERT INTO t VALUES (5,5); DROP TEMPORARY TABLE x2; ROLLBACK TO s; INSERT INTO t VALUES (6,6); COMMIT",
		"BEGIN; INSERT INTO t VALUES (12,2); UPDATE t, m SET t.a = 99, m.a = 99 WHERE t.id = 12; ROLLBACK",
		"BEGIN; INSERT INTO t VALUES (22,2); SAVEPOINT `a b`; INSERT INTO m VALUES (22,3); UPDATE t, m SET t.a = 98, m.a = 98 WHERE t.id = 22 AND m.id = 22; ROLLBACK WORK TO SAVEPOINT `A B`; INSERT INTO t VALUES (24,2); COMMIT",
		"INSERT INTO t VALUES (30,3)")
	r.once()
	r.equal("t", "m")
	for _, c := range r.changes("t") {
		if id := c.After["id"]; c.Op == "t" || id == json.Number("2") || id == json.Number("5") || id == json.Number("12") {
			t.Errorf("a record of what was rolled back: %s %v", c.Op, c.After)
		}
	}
	// A large transaction has been emitted in part.
	r.exec("BEGIN; UPDATE t SET a = 7 WHERE id = 50; INSERT INTO t SELECT 1000 + seq, 0 FROM seq_1_to_3000; DELETE FROM t WHERE id = 1; DROP TEMPORARY TABLE x3; ROLLBACK", "INSERT INTO t VALUES (31,3)")
	r.once()
	r.equal("t")
}
