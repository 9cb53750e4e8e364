package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/daybook-data/daybook/internal/services"
)

// binlogRun fills a binlog with single-row changes and then has a fresh worker catch up.
// The sampled process is the whole worker: source, journal and all.
func binlogRun(ctx context.Context, o options) ([]result, error) {
	dir, err := os.MkdirTemp("", "daybook-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	server, err := services.StartMySQL(ctx, services.Options{})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	file := filepath.Join(dir, "bench.yaml")
	pipeline := fmt.Sprintf(`version: 1
pipeline: bench
journal: {dir: %q}
sources:
  - name: db
    stream: bench.changes
    mysql: {addr: %q, user: repl, password: {env: BENCH_PASSWORD}, tables: ["bench.*"], start: latest}
`, filepath.Join(dir, "data"), server.Addr)
	if err := os.WriteFile(file, []byte(pipeline), 0o600); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", server.DSN("", "app"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := createTable(ctx, db); err != nil {
		return nil, err
	}
	// The first run fixes the position at which the measured one starts.
	if _, err := worker(ctx, o, file); err != nil {
		return nil, fmt.Errorf("fixing the start: %w", err)
	}
	if err := writeChanges(ctx, db, o.changes); err != nil {
		return nil, err
	}
	r, err := worker(ctx, o, file)
	if err != nil {
		return nil, err
	}
	r.records, err = countRecords(ctx, o, filepath.Join(dir, "data"))
	if err == nil && r.records != int64(o.changes) {
		err = fmt.Errorf("%d changes made, %d records in the journal", o.changes, r.records)
	}
	r.bytes = r.records * 190 // sysbench's row as the server stores it
	return []result{r}, err
}

func createTable(ctx context.Context, db *sql.DB) error {
	for _, stmt := range []string{
		"CREATE DATABASE bench",
		"CREATE TABLE bench.sbtest (id BIGINT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// writeChanges inserts rows one a statement, so that each is a row event of its
// own, a thousand to a transaction.
func writeChanges(ctx context.Context, db *sql.DB, n int) error {
	c, pad := strings.Repeat("0123456789-", 10), strings.Repeat("9876543210-", 5)
	for done := 0; done < n; {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		stmt, err := tx.PrepareContext(ctx, "INSERT INTO bench.sbtest (k, c, pad) VALUES (?, ?, ?)")
		if err != nil {
			return err
		}
		for range min(1000, n-done) {
			if _, err := stmt.ExecContext(ctx, done%4096, c, pad); err != nil {
				return err
			}
			done++
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// worker runs `daybook run --once` and returns its wall and CPU time.
func worker(ctx context.Context, o options, file string) (result, error) {
	cmd := exec.CommandContext(ctx, o.binary, "run", file, "--once", "--log-level", "warn")
	cmd.Env = append(os.Environ(), "BENCH_PASSWORD=repl")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return result{}, err
	}
	s := cmd.ProcessState
	return result{name: "binlog to journal", wall: time.Since(start), serverCPU: s.UserTime() + s.SystemTime()}, nil
}

// countRecords counts what is in the journal by reading it, not by asking for offsets.
func countRecords(ctx context.Context, o options, dir string) (int64, error) {
	cmd := exec.CommandContext(ctx, o.binary, "tail", "bench.changes", "--data", dir, "--from", "start", "--once", "--json")
	cmd.Stderr = os.Stderr
	var lines lineCounter
	cmd.Stdout = &lines
	err := cmd.Run()
	return int64(lines), err
}

// lineCounter counts the lines written to it.
type lineCounter int64

func (c *lineCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			*c++
		}
	}
	return len(p), nil
}
