package services

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"testing"
	"time"
)

// MySQLForTest starts a MySQL that ends with the test. Any failure is fatal, and
// a failed test prints the end of the server's log; the same holds for all of
// the functions named like this.
func MySQLForTest(t testing.TB, o Options) *MySQL {
	t.Helper()
	return forTest(t, o, StartMySQL)
}

// MariaDBForTest starts a MariaDB that ends with the test.
func MariaDBForTest(t testing.TB, o Options) *MySQL {
	t.Helper()
	return forTest(t, o, StartMariaDB)
}

// NginxForTest starts an nginx that ends with the test.
func NginxForTest(t testing.TB, o NginxOptions) *Nginx {
	t.Helper()
	return forTest(t, o, StartNginx)
}

// RedisForTest starts a Redis that ends with the test.
func RedisForTest(t testing.TB, o Options) *Redis {
	t.Helper()
	return forTest(t, o, StartRedis)
}

// ElasticsearchForTest starts an Elasticsearch node that ends with the test.
func ElasticsearchForTest(t testing.TB, o Options) *Elasticsearch {
	t.Helper()
	return forTest(t, o, StartElasticsearch)
}

// KafkaForTest starts a Kafka broker that ends with the test.
func KafkaForTest(t testing.TB, o Options) *Kafka {
	t.Helper()
	return forTest(t, o, StartKafka)
}

// NATSForTest starts a NATS server that ends with the test.
func NATSForTest(t testing.TB, o Options) *NATS {
	t.Helper()
	return forTest(t, o, StartNATS)
}

// server is what the helpers need of every kind of server.
type server interface {
	Close() error
	Log() string
	LogTail() string
}

func forTest[S server, O any](t testing.TB, o O, start func(context.Context, O) (S, error)) S {
	t.Helper()
	s, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		printLog(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func printLog(t testing.TB, s server) {
	if t.Failed() {
		t.Logf("the end of %s:\n%s", s.Log(), s.LogTail())
	}
}

// DatabaseForTest creates an empty database that is dropped when the test ends,
// and returns its name.
func (m *MySQL) DatabaseForTest(t testing.TB) string {
	t.Helper()
	db, err := sql.Open("mysql", m.DSN("", "app"))
	if err != nil {
		t.Fatal(err)
	}
	sum := fnv.New32a()
	fmt.Fprint(sum, t.Name(), time.Now().UnixNano())
	name := fmt.Sprintf("t_%08x", sum.Sum32())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now; a server that the test has killed
		// takes the database along when it is closed.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Logf("dropping the test's database: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return name
}
