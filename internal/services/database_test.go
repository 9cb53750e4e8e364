package services_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

func TestMySQLKeepsDataThroughCrash(t *testing.T) {
	a := services.MySQLForTest(t, services.Options{})
	b := shared.MySQL(t)
	testDatabases(t, a, b)
}

func TestMariaDBKeepsDataThroughCrash(t *testing.T) {
	a := services.MariaDBForTest(t, services.Options{})
	b := shared.MariaDB(t)
	testDatabases(t, a, b)
}

func testDatabases(t *testing.T, a, b *services.MySQL) {
	at := map[string]*services.MySQL{a.Addr: a, b.Addr: b}
	for _, m := range at {
		run(t, m, "app", "CREATE TABLE test.t (id INT PRIMARY KEY)")
	}
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) { run(t, at[addr], "app", "INSERT INTO test.t VALUES (7)") },
		count: func(t *testing.T, addr string) int {
			var n int
			query(t, at[addr], "app", "SELECT COUNT(*) FROM test.t", &n)
			return n
		},
	}.test(t)
}

func TestMySQLHasBinlogAccountsAndVariants(t *testing.T) {
	m := shared.MySQL(t)
	if !strings.HasPrefix(m.Version, "9.") {
		t.Errorf("version %q, want 9.x", m.Version)
	}
	var gtid, image string
	var binlog bool
	query(t, m, "repl", "SELECT @@gtid_mode, @@log_bin, @@binlog_row_image", &gtid, &binlog, &image)
	if gtid != "ON" || !binlog || image != "FULL" {
		t.Errorf("gtid %s, binlog %v, row image %s; want ON, true, FULL", gtid, binlog, image)
	}
	testAccounts(t, m, "root", "app", "repl", "plain")

	v := services.MySQLForTest(t, services.Options{Variant: "minimal,nogtid", Args: []string{"--server-id=9"}})
	var id int
	query(t, v, "repl", "SELECT @@gtid_mode, @@binlog_row_image, @@server_id", &gtid, &image, &id)
	if gtid != "OFF" || image != "MINIMAL" || id != 9 {
		t.Errorf("gtid %s, row image %s, server %d; want OFF, MINIMAL, 9", gtid, image, id)
	}
	if _, err := services.StartMySQL(t.Context(), services.Options{Variant: "minimum"}); err == nil {
		t.Error("an unknown variant was accepted")
	}
}

func TestMariaDBHasBinlogAccountsAndVariants(t *testing.T) {
	m := shared.MariaDB(t)
	if !strings.HasPrefix(m.Version, "10.11.") || m.Flavor != "mariadb" {
		t.Errorf("%s %q, want mariadb 10.11", m.Flavor, m.Version)
	}
	var domain int
	var binlog bool
	var format string
	query(t, m, "repl", "SELECT @@gtid_domain_id, @@log_bin, @@binlog_format", &domain, &binlog, &format)
	if domain != 1 || !binlog || format != "ROW" {
		t.Errorf("domain %d, binlog %v, format %s; want 1, true, ROW", domain, binlog, format)
	}
	testAccounts(t, m, "root", "app", "repl", "repl_ed", "plain")

	v := services.MariaDBForTest(t, services.Options{Variant: "domain2"})
	query(t, v, "repl", "SELECT @@gtid_domain_id", &domain)
	if domain != 2 {
		t.Errorf("domain %d, want 2", domain)
	}
}

// testAccounts logs in as each and looks at what plain may not do; no account's
// making is in the binlog.
func testAccounts(t *testing.T, m *services.MySQL, users ...string) {
	t.Helper()
	for _, user := range users {
		var one int
		query(t, m, user, "SELECT 1", &one)
	}
	db := open(t, m, "plain")
	if _, err := db.Exec("CREATE DATABASE stray"); err == nil {
		t.Error("plain may create databases")
	}
	rows, err := open(t, m, "repl").Query("SHOW BINLOG EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var file, kind, info string
		var pos, server, end uint64
		if err := rows.Scan(&file, &pos, &kind, &server, &end, &info); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, "GRANT") {
			t.Errorf("the binlog begins with the making of the accounts: %s", info)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestDatabasesOfTestsAreApart(t *testing.T) {
	m := shared.MySQL(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = m.DatabaseForTest(t)
		if other := m.DatabaseForTest(t); other == name {
			t.Errorf("two databases are named %s", name)
		}
		run(t, m, "app", "CREATE TABLE "+name+".t (id INT PRIMARY KEY)")
	})
	var n int
	query(t, m, "app", "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+name+"'", &n)
	if n != 0 {
		t.Errorf("the database %s outlived its test", name)
	}
}

func TestMySQLBinlogProgramReadsTheServer(t *testing.T) {
	m := services.MySQLForTest(t, services.Options{})
	run(t, m, "app", "CREATE DATABASE seen_in_binlog")
	host, port, _ := strings.Cut(m.Addr, ":")
	cmd, err := m.Command(t.Context(), "mysqlbinlog", "--no-defaults", "--read-from-remote-server",
		"-h"+host, "-P"+port, "-urepl", "-prepl", "--get-server-public-key", "binlog.000001")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "seen_in_binlog") {
		t.Errorf("mysqlbinlog: %v, %s; want the database's creation", err, out)
	}
}

func open(t *testing.T, m *services.MySQL, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", m.DSN("", user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func run(t *testing.T, m *services.MySQL, user, statement string) {
	t.Helper()
	if _, err := open(t, m, user).Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func query(t *testing.T, m *services.MySQL, user, statement string, into ...any) {
	t.Helper()
	if err := open(t, m, user).QueryRow(statement).Scan(into...); err != nil {
		t.Fatalf("%s as %s: %v", statement, user, err)
	}
}
