package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

// setGTIDMode goes to a mode the one way that the server allows, one step after the other.
func (r *rig) setGTIDMode(steps ...string) {
	r.t.Helper()
	for _, mode := range steps {
		r.exec("SET GLOBAL gtid_mode = " + mode)
	}
}

// A server whose gtid_mode is switched hands out nothing of the other kind that was not read before. The way out is told,
// and nothing is lost on it.
func TestTheGTIDModeIsSwitched(t *testing.T) {
	t.Parallel()
	for name, away := range map[string][]string{
		"off":              {"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"},
		"off and on again": {"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, services.MySQLForTest(t, services.Options{}))
			r.exec("CREATE TABLE o (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO o VALUES ()")
			r.once()
			r.exec("INSERT INTO o VALUES ()")
			for _, mode := range away {
				r.setGTIDMode(mode)
				r.exec("INSERT INTO o VALUES ()", "FLUSH BINARY LOGS")
			}
			stop := r.wantStop("gtid-mode")
			if !strings.Contains(stop.Fix, "SET GLOBAL gtid_mode = ON_PERMISSIVE") {
				t.Errorf("the fix is %q", stop.Fix)
			}
			if name == "off" {
				r.setGTIDMode("OFF_PERMISSIVE")
			}
			r.setGTIDMode("ON_PERMISSIVE")
			r.once()
			r.equal("o")
			for _, mode := range []string{"ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"} {
				r.setGTIDMode(mode)
				r.exec("INSERT INTO o VALUES ()")
				r.once()
				r.equal("o")
			}
		})
	}
	t.Run("while it is read", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, services.MySQLForTest(t, services.Options{}))
		r.exec("CREATE TABLE o (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO o VALUES ()")
		run := r.start(nil)
		r.await("the first row", func() bool { return len(r.state("o")) == 1 && run.source.Report().Phase == "live" })
		r.setGTIDMode("ON_PERMISSIVE", "OFF_PERMISSIVE")
		r.exec("INSERT INTO o VALUES ()")
		<-run.done
		var stop *pipeline.StopError
		if errors.As(run.err, &stop) {
			t.Errorf("the source stops, although it could go on: %v", run.err)
		}
		if run.err == nil || !strings.Contains(run.err.Error(), "the server's gtid_mode was changed") {
			t.Errorf("the run ended with: %v", run.err)
		}
		r.once()
		r.equal("o")
	})
}
