package services_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
)

func TestServersDieWithTheirProcess(t *testing.T) {
	for _, name := range []string{"mysql", "mariadb", "redis", "elasticsearch", "nginx", "kafka", "nats"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, name)
			if pids := processesOf(t, c.server.Dir); len(pids) == 0 {
				t.Fatalf("no process names %s: the test would see nothing", c.server.Dir)
			}
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all processes of the server are gone", func() bool {
				return len(processesOf(t, c.server.Dir)) == 0
			})
		})
	}
}

func TestDataOfKilledProcessesIsRemoved(t *testing.T) {
	c := startChild(t, "redis")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	alive := services.RedisForTest(t, services.Options{})
	if _, err := os.Stat(c.server.Dir); !os.IsNotExist(err) {
		t.Errorf("the directory of a killed process: %v, want it removed by the next start", err)
	}
	services.RedisForTest(t, services.Options{})
	if _, err := os.Stat(alive.Dir); err != nil {
		t.Errorf("the directory of a running server: %v, want it untouched by the next start", err)
	}
}

type runningChild struct {
	cmd    *exec.Cmd
	server child
}

// startChild runs this test binary as a process that holds a server.
func startChild(t *testing.T, name string) runningChild {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := runningChild{cmd: cmd}
	if err := json.NewDecoder(out).Decode(&c.server); err != nil {
		t.Fatalf("waiting for the server of the child process: %v", err)
	}
	return c
}

// processesOf returns the processes that name the directory in their command
// line or work in it: also a worker, which has no command line of its own.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, p := range entries {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline")) // gone meanwhile: not ours
		open, _ := os.ReadDir(filepath.Join(p, "fd"))
		ours := strings.Contains(string(line), dir)
		for _, fd := range open {
			target, _ := os.Readlink(filepath.Join(p, "fd", fd.Name()))
			ours = ours || strings.HasPrefix(target, dir+"/")
		}
		if ours {
			pids = append(pids, filepath.Base(p))
		}
	}
	return pids
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so after 30 s: %s", what)
		case <-tick.C:
		}
	}
}
