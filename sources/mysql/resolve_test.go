package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// unfollowed is a change of a definition that Daybook does not follow.
const unfollowed = "ALTER TABLE d CONVERT TO CHARACTER SET DEFAULT"

// Behind a statement that can't be followed the server is asked, where nothing has
// changed since.
func TestUnfollowedStatementAtTheHead(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.exec("CREATE TABLE d (id INT PRIMARY KEY, a VARCHAR(9), b TEXT) CHARACTER SET latin1", "INSERT INTO d VALUES (1,'é','ü')")
		r.once()
		r.exec(unfollowed, "INSERT INTO d VALUES (2,'é','ü')", "CREATE TABLE unrelated (id INT PRIMARY KEY)")
		r.once()
		r.equal("d")
	})
}

// In a backlog with a later change the definition can't be known from the server. Then
// the log's own metadata decides, and without it the table is parked.
func TestUnfollowedStatementInABacklog(t *testing.T) {
	t.Run("minimal metadata", func(t *testing.T) {
		t.Parallel()
		for _, server := range []*services.MySQL{pool.MySQL(t), pool.MariaDB(t)} {
			r := newRig(t, server)
			r.exec("CREATE TABLE d (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9)) CHARACTER SET latin1", "INSERT INTO d VALUES (1,'é','ü')")
			r.once()
			r.exec(unfollowed, "INSERT INTO d VALUES (2,'a2','b2')", "ALTER TABLE d RENAME COLUMN a TO x")
			stop := r.wantStop("schema-unknown")
			if !strings.Contains(stop.Fix, "binlog_row_metadata") {
				t.Errorf("the fix is %q", stop.Fix)
			}
			if n := len(r.changes("d")); n != 1 {
				t.Errorf("%d records, want the one before", n)
			}
			r.once() // at the head the definition is known again
			r.equal("d")
		}
	})
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run("full metadata "+flavor, func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			r := newRig(t, start(t, services.Options{Variant: "fullmeta"}))
			r.exec("CREATE TABLE d (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), e ENUM('x','z'), u BIGINT UNSIGNED, bn BINARY(4)) CHARACTER SET latin1")
			r.exec("INSERT INTO d VALUES (1,'é','ü','x',18446744073709551615,0x00)")
			r.once()
			r.exec(unfollowed, "INSERT INTO d VALUES (2,'é','b2','x',18446744073709551615,0x00)", "ALTER TABLE d RENAME COLUMN a TO x, DROP COLUMN u", "INSERT INTO d VALUES (3,'é','b3','z',0x01)")
			r.once()
			r.wantAfters("d", "r map[a:é b:ü bn:AAAAAA== e:x id:1 u:18446744073709551615]",
				"c map[a:é b:b2 bn:AAAAAA== e:x id:2 u:18446744073709551615]", "c map[b:b3 bn:AQAAAA== e:z id:3 x:é]")
		})
	}
}

// Every value is right with full metadata too, and where the definition is made of it.
func TestValuesWithFullMetadata(t *testing.T) {
	for _, flavor := range []string{"mysql", "mariadb"} {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			server := start(t, services.Options{Variant: "fullmeta", Args: []string{"--default-time-zone=+08:00"}})
			r := newRig(t, server)
			r.exec(typeMatrix[0])
			r.once()
			// The definition is forgotten at a rename that is not followed.
			r.exec(strings.Replace(typeMatrix[0], "CREATE TABLE m", "CREATE TABLE `outside`", 1))
			r.exec(typeMatrix[1:]...)
			r.once()
			r.equal("m")
		})
	}
}

// The snapshot goes on through changes of the definition.
func TestSnapshotMeetsDDL(t *testing.T) {
	modes(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.ChunkRows = 20
		r.exec("CREATE TABLE d (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
		r.insertRows("d", 1, 2000)
		run := r.start(nil)
		for i := range 12 {
			r.exec(fmt.Sprintf("ALTER TABLE d ADD COLUMN c%d INT DEFAULT %d AFTER id", i, i), fmt.Sprintf("UPDATE d SET v = 'u%d' WHERE id %% 50 = %d", i, i))
			if i%4 == 3 {
				r.exec(fmt.Sprintf("ALTER TABLE d DROP COLUMN c%d", i-1), unfollowed[:len("ALTER TABLE d ")]+"MODIFY v VARCHAR(50)")
			}
		}
		r.await("the end of the snapshot", func() bool {
			select {
			case <-run.done:
				t.Fatalf("Run ended: %v", run.err)
			default:
			}
			return run.source.Report().Phase == "live"
		})
		run.stop()
		r.exec("UPDATE d SET n = n + 1") // rows that were read before a column came lack it
		r.once()
		r.equal("d")
	})
}
