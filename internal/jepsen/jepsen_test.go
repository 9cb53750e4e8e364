//go:build linux

package jepsen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen"
	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// binaryPath is the command, built once for all tests of the package: static, as it is shipped, or with the race detector
// where DAYBOOK_RACE is set.
var binaryPath string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "daybook-jepsen-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaryPath = filepath.Join(dir, "daybook")
	cgo, flags := "0", []string{"build", "-o", binaryPath}
	if os.Getenv("DAYBOOK_RACE") != "" {
		cgo, flags = "1", append(flags, "-race")
	}
	cmd := exec.Command("go", append(flags, "github.com/daybook-data/daybook/cmd/daybook")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// seeds are those of a test: 1 by default, DAYBOOK_SEEDS many for long runs, and only DAYBOOK_SEED where it is set, to
// run again what failed.
func seeds(t *testing.T) (list []uint64) {
	t.Helper()
	number := func(name string, def uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return def
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	if seed := number("DAYBOOK_SEED", 0); seed != 0 {
		return []uint64{seed}
	}
	for seed := range number("DAYBOOK_SEEDS", 1) {
		list = append(list, seed+1)
	}
	return list
}

// faults is how many a trial draws: few, or minutes of them where there are many seeds.
func faults() int {
	if os.Getenv("DAYBOOK_SEEDS") == "" {
		return 5
	}
	return 16
}

// try runs a trial with each seed. Where there are several nodes, every other one is of streams that are acknowledged from
// memory.
func try(t *testing.T, trial jepsen.Trial) {
	t.Helper()
	for _, seed := range seeds(t) {
		trial.Seed, trial.Binary, trial.Faults = seed, binaryPath, faults()
		trial.Replicated = trial.Nodes > 1 && seed%2 == 0
		r, err := trial.Run(t.Context())
		if r != nil {
			t.Logf("seed %d: %d operations under:", seed, len(r.Ops))
			for _, line := range r.Timeline {
				t.Log(line)
			}
			t.Log(r.Counts(), r.Changes, r.Faults)
		}
		if err != nil {
			t.Fatalf("run it again with DAYBOOK_SEED=%d: %v", seed, err)
		}
		// A history in which nothing happened breaks no rule.
		kinds := []string{"send ok", "txn ok", "poll ok", "commit ok", "fetch ok", "end ok", "create ok", "delete ok", "scan ok"}
		if trial.Observers > 0 {
			kinds = append(kinds, "watch ok")
		}
		if trial.Operator && len(r.Changes) == 0 {
			t.Errorf("seed %d: the operator has not changed anything", seed)
		}
		for _, kind := range kinds {
			if r.Counts()[kind] == 0 {
				t.Errorf("seed %d: no operation is %q: %v", seed, kind, r.Counts())
			}
		}
	}
}

// TestFiveNodesKeepTheirPromisesWhileTheyChange is of nodes that come and go, of journals that move between them, and of an
// observer of an observer. It takes longest, so it begins first.
func TestFiveNodesKeepTheirPromisesWhileTheyChange(t *testing.T) {
	t.Parallel()
	try(t, jepsen.Trial{Name: "five", Nodes: 5, Replicas: 3, Observers: 2, TLS: true, Operator: true})
}

func TestOneNodeKeepsItsPromisesUnderFaults(t *testing.T) {
	t.Parallel()
	try(t, jepsen.Trial{Name: "one", Nodes: 1})
}

func TestThreeNodesKeepTheirPromisesUnderFaults(t *testing.T) {
	t.Parallel()
	try(t, jepsen.Trial{Name: "three", Nodes: 3})
}

// TestClocksThatJumpDisturbNobody sets clocks hours ahead and back under three nodes: no connection may be taken for
// silent by who has only been told another time of day, and clients are served all the time.
func TestClocksThatJumpDisturbNobody(t *testing.T) {
	t.Parallel()
	if !lab.HasClocks {
		t.Fatalf("machines have no clocks of their own on %s", runtime.GOARCH)
	}
	trial := jepsen.Trial{Name: "clocks", Nodes: 3, Seed: 1, Binary: binaryPath}
	for _, f := range []jepsen.Fault{
		jepsen.Jump(5*time.Hour, 1), jepsen.Jump(-5*time.Hour, 2), jepsen.Strobe(3*time.Hour, 3), jepsen.Jump(7*time.Hour, 1, 2, 3), jepsen.Misset(-20*time.Minute, 2),
	} {
		f.For, f.Rest = time.Second, 500*time.Millisecond
		trial.Script = append(trial.Script, f)
	}
	r, err := trial.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Counts())
	if line := regexp.MustCompile(`.*silent for \d+h.*`).Find(r.Log); line != nil {
		t.Errorf("a jump was taken for silence: %s", line)
	}
}

// TestTheRecipeThatSplitNATSDoesNotSplit runs it from one node on or, in long runs, from each.
func TestTheRecipeThatSplitNATSDoesNotSplit(t *testing.T) {
	t.Parallel()
	usurp(t, jepsen.Trial{Name: "usurp", Nodes: 5})
}

// TestTheRecipeDoesNotSplitReplicatedStreams is where it matters: what the victim acknowledged was in its memory alone, and
// is gone with its power.
func TestTheRecipeDoesNotSplitReplicatedStreams(t *testing.T) {
	t.Parallel()
	usurp(t, jepsen.Trial{Name: "usurp-replicated", Nodes: 5, Replicated: true})
}

func usurp(t *testing.T, trial jepsen.Trial) {
	t.Helper()
	trial.Binary = binaryPath
	for i := range min(len(seeds(t)), 5) {
		trial.Seed, trial.Script = uint64(i+1), jepsen.Usurp(i+1)
		r, err := trial.Run(t.Context())
		if r != nil {
			t.Log(r.Counts())
		}
		if err != nil {
			t.Errorf("from node %d on: %v", i+1, err)
		}
	}
}
