package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Pool shares one server of a kind between the tests of one process. The zero
// value is ready; a server starts when it is first asked for. The tests must
// keep apart by themselves: a database, an index or a key prefix each, and none
// of them stops the server.
//
//	var shared services.Pool
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
// A Pool is safe for concurrent use.
type Pool struct {
	mysql         shared[*MySQL]
	mariadb       shared[*MySQL]
	redis         shared[*Redis]
	elasticsearch shared[*Elasticsearch]
	kafka         shared[*Kafka]
}

// Run runs the tests, ends the servers and returns the exit code.
func (p *Pool) Run(m *testing.M) int {
	code := m.Run()
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Close ends the servers.
func (p *Pool) Close() error {
	return errors.Join(p.mysql.close(), p.mariadb.close(), p.redis.close(), p.elasticsearch.close(), p.kafka.close())
}

// MySQL returns the shared MySQL; see DatabaseForTest.
func (p *Pool) MySQL(t testing.TB) *MySQL { t.Helper(); return p.mysql.get(t, StartMySQL) }

// MariaDB returns the shared MariaDB; see DatabaseForTest.
func (p *Pool) MariaDB(t testing.TB) *MySQL { t.Helper(); return p.mariadb.get(t, StartMariaDB) }

// Redis returns the shared Redis.
func (p *Pool) Redis(t testing.TB) *Redis { t.Helper(); return p.redis.get(t, StartRedis) }

// Elasticsearch returns the shared Elasticsearch node.
func (p *Pool) Elasticsearch(t testing.TB) *Elasticsearch {
	t.Helper()
	return p.elasticsearch.get(t, StartElasticsearch)
}

// Kafka returns the shared Kafka broker.
func (p *Pool) Kafka(t testing.TB) *Kafka { t.Helper(); return p.kafka.get(t, StartKafka) }

// shared is a server that is started at most once.
type shared[S server] struct {
	mu      sync.Mutex // held during the start
	started bool
	server  S     // set once started
	err     error // of the start
}

func (s *shared[S]) get(t testing.TB, start func(context.Context, Options) (S, error)) S {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		s.server, s.err = start(t.Context(), Options{})
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { printLog(t, s.server) })
	return s.server
}

// close ends the server, if there is one.
func (s *shared[S]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.err != nil {
		return nil
	}
	return s.server.Close()
}
