package services_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

func TestMySQLQuick(t *testing.T) {
	m, err := services.StartMySQL(context.Background(), services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	db, err := sql.Open("mysql", m.DSN("test", "app"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table x(a int)"); err != nil {
		t.Fatal(err)
	}
	t.Log(m.Version, m.Dir)
}
func TestRedisQuick(t *testing.T) {
	m, err := services.StartRedis(context.Background(), services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
}
func TestESQuick(t *testing.T) {
	m, err := services.StartElasticsearch(context.Background(), services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := http.Get(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	t.Logf("%s", b)
}
func TestMariaQuick(t *testing.T) {
	m := services.MariaDBForTest(t, services.Options{})
	t.Log(m.Version)
	for _, u := range []string{"app", "repl", "repl_ed", "plain", "root"} {
		db, err := sql.Open("mysql", m.DSN("test", u))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Ping(); err != nil {
			t.Error(err)
		}
	}
}
func TestNginxQuick(t *testing.T) {
	m := services.NginxForTest(t, services.NginxOptions{})
	r, err := http.Get(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	t.Logf("%s", b)
	b, err = os.ReadFile(m.AccessLog())
	t.Logf("%s", b)
}
func TestKafkaQuick(t *testing.T) {
	m := services.KafkaForTest(t, services.Options{})
	t.Log(m.Addr)
}
