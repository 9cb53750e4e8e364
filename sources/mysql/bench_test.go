package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/mysql"
)

// counter is an Emitter that keeps nothing but the last position and counts.
type counter struct {
	records, bytes int
	resume         pipeline.Position
}

func (c *counter) Emit(_ context.Context, records []pipeline.Record, resume pipeline.Position) error {
	c.records += len(records)
	for i := range records {
		c.bytes += len(records[i].Value)
	}
	if resume != "" {
		c.resume = resume
	}
	return nil
}

func (c *counter) Flush(context.Context) error { return nil }

// digits returns sysbench's groups of eleven digits.
func digits(rng *rand.Rand, groups int) string {
	var b strings.Builder
	for i := range groups {
		if i > 0 {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%011d", rng.Int64N(1e11))
	}
	return b.String()
}

// BenchmarkCatchUp reads single-row changes of sysbench's table, half updates, a
// quarter inserts, a quarter deletes, 100 to a transaction, from the log of a server
// that writes nothing meanwhile. It counts records at the Emitter. CHANGES sets how
// many (default 200,000).
func BenchmarkCatchUp(b *testing.B) {
	changes := 200_000
	if n, err := strconv.Atoi(os.Getenv("CHANGES")); err == nil {
		changes = n
	}
	for _, flavor := range []string{"mysql", "mariadb"} {
		b.Run(flavor, func(b *testing.B) {
			var server *services.MySQL
			if flavor == "mysql" {
				server = pool.MySQL(b)
			} else {
				server = pool.MariaDB(b)
			}
			benchCatchUp(b, server, changes)
		})
	}
}

func benchCatchUp(b *testing.B, server *services.MySQL, changes int) {
	name := server.DatabaseForTest(b)
	cfg := mysql.Config{Addr: server.Addr, User: "repl", Password: configs.NewSecret("repl"), Tables: []string{name + ".*"}, Start: "latest", ZeroDate: "text", Truncate: "propagate"}
	open := func() *mysql.Source {
		s, err := mysql.New(cfg, pipeline.SourceEnv{Pipeline: "bench", Name: "db", Once: true})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	db, err := sql.Open("mysql", server.DSN(name, "app")+"?multiStatements=true")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	exec := func(q string) {
		if _, err := db.Exec(q); err != nil {
			b.Fatal(err)
		}
	}
	exec("CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k)) CHARACTER SET utf8mb4")
	rng := rand.New(rand.NewPCG(1, 2))
	row := func(id int) string {
		return fmt.Sprintf("(%d,%d,'%s','%s')", id, rng.IntN(1e6), digits(rng, 10), digits(rng, 5))
	}
	loaded := changes
	for id := 1; id <= loaded; {
		var rows []string
		for ; len(rows) < 1000 && id <= loaded; id++ {
			rows = append(rows, row(id))
		}
		exec("INSERT INTO sbtest1 VALUES " + strings.Join(rows, ","))
	}
	start := &counter{}
	if err := open().Run(b.Context(), "", start); err != nil {
		b.Fatal(err)
	}
	update, del, insert := loaded/2, 1, loaded
	for n := 0; n < changes; n += 100 {
		var q strings.Builder
		q.WriteString("BEGIN;")
		for i := range 100 {
			switch i % 4 {
			case 0, 1:
				fmt.Fprintf(&q, "UPDATE sbtest1 SET k=k+1 WHERE id=%d;", update)
				if update++; update > loaded {
					update = loaded / 2
				}
			case 2:
				insert++
				fmt.Fprintf(&q, "INSERT INTO sbtest1 VALUES %s;", row(insert))
			default:
				fmt.Fprintf(&q, "DELETE FROM sbtest1 WHERE id=%d;", del)
				del++
			}
		}
		q.WriteString("COMMIT")
		exec(q.String())
	}
	for b.Loop() {
		out := &counter{}
		begin, cpu := time.Now(), cpuTime()
		if err := open().Run(b.Context(), start.resume, out); err != nil {
			b.Fatal(err)
		}
		seconds := time.Since(begin).Seconds()
		if out.records != changes {
			b.Fatalf("got %d records of %d changes", out.records, changes)
		}
		b.ReportMetric(float64(out.records)/seconds, "changes/s")
		b.ReportMetric((cpuTime()-cpu).Seconds()*1e6/float64(out.records), "cpu-s/M")
		b.ReportMetric(float64(out.bytes)/float64(out.records), "B/change")
	}
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
