package mysql_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/mysql"
)

func TestConfigIsStrict(t *testing.T) {
	t.Setenv("MYSQL_TEST_PASSWORD", "hunter2")
	for _, c := range []struct{ text, want string }{
		{"{user: repl, tables: [\"shop.*\"]}", ""},
		{"{user: repl, password: {env: MYSQL_TEST_PASSWORD}, tables: [shop.orders, \"!shop.tmp_*\", \"/shop\\\\.(a|b)/\"], start: latest, truncate: stop, zero_date: \"null\", chunk_rows: 5, server_id: 7}", ""},
		{"{user: repl, tables: [\"shop.*\"], tls: {mode: encrypt}}", ""},
		{"{tables: [\"shop.*\"]}", `"user" is missing`},
		{"{user: repl}", `"tables" is missing`},
		{"{user: repl, tables: []}", "must not be empty"},
		{"{user: repl, tables: [orders]}", "want database.table"},
		{"{user: repl, tables: [\"/(/\"]}", "missing closing )"},
		{"{user: repl, tables: [\"!shop.a\"]}", "select nothing"},
		{"{user: repl, tables: [\"shop.*\"], start: snapshto}", "snapshot"},
		{"{user: repl, tables: [\"shop.*\"], password: hunter2}", "a secret does not stand in the file"},
		{"{user: repl, tables: [\"shop.*\"], chunk_rows: 0}", "from 1 to"},
		{"{user: repl, tables: [\"shop.*\"], server_id: -1}", "from 0 to"},
		{"{user: repl, tables: [\"shop.*\"], zero_date: zero}", "is not one of"},
		{"{user: repl, tables: [\"shop.*\"], tls: {ca: x}}", "mode: off"},
		{"{user: repl, tables: [\"shop.*\"], tls: {mode: verify, cert: x}}", "go together"},
		{"{user: repl, tables: [\"shop.*\"], tls: {mode: verify, ca: /nowhere/ca.pem}}", "reading tls.ca"},
		{"{user: repl, tables: [\"shop.*\"], table: x}", `did you mean "tables"`},
	} {
		err := configs.Decode("pipeline.yaml", []byte(c.text), &mysql.Config{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q in it", c.text, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the error shows the secret: %v", c.text, err)
		}
	}
}

func TestMissingCertificateIsFoundAtOpen(t *testing.T) {
	c := mysql.Config{Addr: "127.0.0.1:1", User: "u", Tables: []string{"a.b"}, TLS: mysql.TLSConfig{Mode: "verify", CA: "/nonexistent/ca.pem"}}
	if _, err := c.OpenSource(pipeline.SourceEnv{}); err == nil || !strings.Contains(err.Error(), "tls.ca") {
		t.Errorf("got %v, want an error about tls.ca", err)
	}
}

func TestSelectionOfTables(t *testing.T) {
	r := newRig(t, pool.MySQL(t))
	r.exec("CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE TABLE Orders2 (id INT PRIMARY KEY)", "CREATE TABLE order_items (id INT PRIMARY KEY)", "CREATE TABLE tmp_x (id INT PRIMARY KEY)")
	for _, table := range []string{"orders", "Orders2", "order_items", "tmp_x"} {
		r.exec("INSERT INTO " + table + " VALUES (1)")
	}
	for _, c := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"DB.*"}, "Orders2 order_items orders tmp_x"},
		{[]string{"DB.*", "!DB.tmp_*"}, "Orders2 order_items orders"},
		{[]string{"DB.order?"}, "orders"},
		{[]string{"DB.orders2"}, ""}, // case counts on this server
		{[]string{`/DB\.(orders|order_.*)/`}, "order_items orders"},
		{[]string{"*.order_items"}, "order_items"},
	} {
		in := newRig(t, pool.MySQL(t))
		in.name = r.name
		in.cfg.Tables = nil
		for _, p := range c.patterns {
			in.cfg.Tables = append(in.cfg.Tables, strings.ReplaceAll(p, "DB", r.name))
		}
		in.once()
		var got []string
		for _, table := range []string{"Orders2", "order_items", "orders", "tmp_x"} {
			if len(in.changes(table)) > 0 {
				got = append(got, table)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v selects %v, want %s", c.patterns, got, c.want)
		}
	}
}

func TestEncryptedConnections(t *testing.T) {
	r := newRig(t, pool.MySQL(t))
	r.cfg.TLS.Mode = "encrypt"
	r.exec("CREATE TABLE e (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
	r.insertRows("e", 1, 100)
	r.once()
	r.insertRows("e", 101, 3000)
	r.once()
	r.equal("e")
	r.cfg.TLS.Mode = "verify"
	if err := r.tryOnce(nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want the server's own certificate to be refused", err)
	}
}
