package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

// wantStop reads once and wants a stop with the code; it returns the error.
func (r *rig) wantStop(code string) *pipeline.StopError {
	r.t.Helper()
	err := r.tryOnce(nil)
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		r.t.Fatalf("got %v, want a stop with the code %s", err, code)
	}
	if stop.Where == "" || stop.Fix == "" || stop.Err == nil {
		r.t.Errorf("the stop does not say where, why and what to do: %+v", stop)
	}
	return stop
}

// What is beyond us is refused with its name, at the start and when it comes later. All
// else is captured to the end, and a run with an end does not call that success.
func TestUnsupportedTables(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		type refusal struct{ code, create, insert string }
		refusals := []refusal{
			{"unsupported-column", "(id INT PRIMARY KEY, g GEOMETRY)", "VALUES (1, POINT(1,2))"},
			{"unsupported-column", "(id INT PRIMARY KEY, g VARCHAR(9) CHARACTER SET gbk)", "VALUES (1, 'x')"},
			{"unsupported-column", "(id FLOAT PRIMARY KEY)", "VALUES (1)"},
			{"no-primary-key", "(id INT, v INT)", "VALUES (1, 1)"},
			{"no-primary-key", "(id INT, v INT, UNIQUE KEY (v))", "VALUES (1, NULL)"},
		}
		if server.Flavor == "mysql" {
			refusals = append(refusals, refusal{"unsupported-column", "(id INT PRIMARY KEY, g VECTOR(3))", "VALUES (1, NULL)"})
		} else {
			refusals = append(refusals,
				refusal{"unsupported-column", "(id INT PRIMARY KEY, g UUID)", "VALUES (1, '123e4567-e89b-12d3-a456-426655440000')"},
				refusal{"unsupported-column", "(id INT PRIMARY KEY, g INET6)", "VALUES (1, '::1')"},
				refusal{"unsupported-column", "(id INT PRIMARY KEY, g VARCHAR(99) COMPRESSED)", "VALUES (1, 'x')"},
				refusal{"unsupported-column", "(id INT PRIMARY KEY, g BLOB COMPRESSED)", "VALUES (1, REPEAT('x', 999))"},
				refusal{"unsupported-table", "(id INT PRIMARY KEY) WITH SYSTEM VERSIONING", "VALUES (1)"},
			)
		}
		for _, c := range refusals {
			t.Run(c.create, func(t *testing.T) {
				r := newRig(t, server)
				r.exec("CREATE TABLE fine (id INT PRIMARY KEY)")
				r.once()
				r.exec("CREATE TABLE bad "+c.create, "INSERT INTO fine VALUES (1)", "INSERT INTO bad "+c.insert, "INSERT INTO fine VALUES (3)")
				stop := r.wantStop(c.code)
				r.equal("fine")
				if !strings.Contains(stop.Where, "bad") {
					t.Errorf("the stop names %q, not the table", stop.Where)
				}
				again := newRig(t, server)
				again.exec("CREATE TABLE bad " + c.create)
				again.wantStop(c.code)
				r.cfg.Tables = append(r.cfg.Tables, "!"+r.name+".bad")
				r.exec("INSERT INTO fine VALUES (2)")
				r.once()
				r.equal("fine")
			})
		}
	})
}

// A unique key without NULL stands in for a primary key.
func TestUniqueKeyAsKey(t *testing.T) {
	each(t, func(t *testing.T, server *services.MySQL) {
		r := newRig(t, server)
		r.cfg.ChunkRows = 2
		r.exec("CREATE TABLE u (v INT, a INT NOT NULL, b VARCHAR(9) NOT NULL, UNIQUE KEY (v), UNIQUE KEY ab (b, a))", "INSERT INTO u VALUES (1,1,'x'),(2,2,'x'),(3,1,'y'),(4,4,'z'),(NULL,5,'z')")
		r.once()
		r.exec("UPDATE u SET v = v + 10, a = a + 10 WHERE b = 'x'", "DELETE FROM u WHERE b = 'y'")
		r.once()
		if got := len(r.state("u")); got != 4 {
			t.Errorf("%d rows, want 4", got)
		}
		for key := range r.state("u") {
			if !strings.HasPrefix(key, `{"b":"`) {
				t.Errorf("the key is %s", key)
			}
		}
	})
}

// Settings under which the log does not tell all are found before the first event.
func TestPreflight(t *testing.T) {
	for _, c := range []struct{ flavor, variant, code, names string }{
		{"mysql", "minimal", "incomplete-rows", "binlog_row_image"},
		{"mysql", "noblob", "incomplete-rows", "binlog_row_image"},
		{"mysql", "partialjson", "incomplete-rows", "binlog_row_value_options"},
		{"mariadb", "minimal", "incomplete-rows", "binlog_row_image"},
		{"mariadb", "statement", "binlog-format", "binlog_format"},
	} {
		t.Run(c.flavor+" "+c.variant, func(t *testing.T) {
			t.Parallel()
			start := services.MySQLForTest
			if c.flavor == "mariadb" {
				start = services.MariaDBForTest
			}
			r := newRig(t, start(t, services.Options{Variant: c.variant}))
			if stop := r.wantStop(c.code); !strings.Contains(stop.Fix, c.names) {
				t.Errorf("the fix %q does not name %s", stop.Fix, c.names)
			}
		})
	}
	t.Run("no binary log", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, services.MySQLForTest(t, services.Options{Args: []string{"--disable-log-bin"}}))
		r.wantStop("no-binlog")
	})
	t.Run("a database that is not logged", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, services.MySQLForTest(t, services.Options{Args: []string{"--binlog-do-db=another"}}))
		r.exec("CREATE TABLE o (id INT PRIMARY KEY)")
		r.wantStop("binlog-filtered")
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, pool.MySQL(t))
		r.cfg.User = "nobody"
		stop := r.wantStop("access-denied")
		if strings.Contains(stop.Error(), "repl") && strings.Contains(stop.Error(), "password: repl") {
			t.Errorf("the error shows the password: %v", stop)
		}
	})
	t.Run("account without replication", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, pool.MySQL(t))
		r.exec("CREATE USER IF NOT EXISTS onlyselect@'%' IDENTIFIED BY 'repl'", "GRANT SELECT ON *.* TO onlyselect@'%'")
		r.cfg.User = "onlyselect"
		r.wantStop("access-denied")
	})
}
