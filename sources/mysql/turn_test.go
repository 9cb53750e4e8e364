package mysql_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

// A server keeps the deleted file open for a reader that is connected while its log is reset, and then goes on with the
// next file of the new log.
func TestAResetUnderAConnectedSourceStopsIt(t *testing.T) {
	for name, server := range map[string]struct {
		start   func(testing.TB, services.Options) *services.MySQL
		variant string
		reset   string
	}{
		"mysql":               {services.MySQLForTest, "", "RESET BINARY LOGS AND GTIDS"},
		"mysql without gtids": {services.MySQLForTest, "nogtid", "RESET BINARY LOGS AND GTIDS"},
		"mariadb":             {services.MariaDBForTest, "", "RESET MASTER"},
	} {
		for what, after := range map[string][]string{
			"and goes on in the next file":   {"INSERT INTO o VALUES (11)", "FLUSH LOGS", "INSERT INTO o VALUES (12)"},
			"and nothing more comes":         {},
			"and goes on in the same number": {"INSERT INTO o VALUES (11)", "INSERT INTO o SELECT id + 100 FROM o", "INSERT INTO o SELECT id + 1000 FROM o", "INSERT INTO o SELECT id + 10000 FROM o"},
		} {
			t.Run(fmt.Sprint(name, " ", what), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, server.start(t, services.Options{Variant: server.variant}))
				r.exec(server.reset) // so that the file is the first one
				r.exec("CREATE TABLE o (id INT PRIMARY KEY)")
				run := r.start(nil)
				r.await("the start", func() bool { return run.source.Report().Phase == "live" })
				r.exec("INSERT INTO o VALUES (0)", "INSERT INTO o VALUES (1)")
				r.await("what was written", func() bool { return run.source.Report().Counters["mysql_records"] == 2 })
				time.Sleep(1100 * time.Millisecond) // the age of a file is in whole seconds
				r.exec(server.reset)
				r.exec(after...)
				select {
				case <-run.done:
				case <-time.After(patience):
					t.Fatal("the source goes on")
				}
				var stop *pipeline.StopError
				if !errors.As(run.err, &stop) { // a server that finds nothing where its new log is longer hangs up
					r.wantStop("binlog-reset")
				} else if stop.Code != "binlog-reset" {
					t.Fatalf("the source ended with %v", run.err)
				}
			})
		}
	}
}

// A file that a crash has cut off does not say which comes next, either; the log goes on.
func TestTheLogIsReadOnBehindACrash(t *testing.T) {
	for name, start := range map[string]func(testing.TB, services.Options) *services.MySQL{
		"mysql": services.MySQLForTest, "mariadb": services.MariaDBForTest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, services.Options{})
			r := newRig(t, server)
			r.exec("CREATE TABLE o (id INT PRIMARY KEY)", "INSERT INTO o VALUES (0)")
			r.once()
			for i := range 3 {
				r.exec(fmt.Sprintf("INSERT INTO o VALUES (%d)", i+1))
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r.exec("INSERT INTO o VALUES (4)")
			r.once()
			r.equal("o")
		})
	}
}
