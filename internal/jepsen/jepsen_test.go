//go:build linux

package jepsen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/daybook-data/daybook/internal/jepsen"
)

// binaryPath is the command, built once for all tests of the package.
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
	cmd := exec.Command("go", "build", "-o", binaryPath, "github.com/daybook-data/daybook/cmd/daybook")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
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
		return 6
	}
	return 16
}

func try(t *testing.T, trial jepsen.Trial) {
	t.Helper()
	for _, seed := range seeds(t) {
		trial.Seed, trial.Binary, trial.Faults = seed, binaryPath, faults()
		r, err := trial.Run(t.Context())
		if r != nil {
			t.Logf("seed %d: %d operations under:", seed, len(r.Ops))
			for _, line := range r.Timeline {
				t.Log(line)
			}
			t.Log(r.Counts())
		}
		if err != nil {
			t.Fatalf("run it again with DAYBOOK_SEED=%d: %v", seed, err)
		}
		// A history in which nothing happened breaks no rule.
		for _, kind := range []string{"send ok", "txn ok", "poll ok", "commit ok", "fetch ok", "end ok", "create ok", "delete ok", "scan ok"} {
			if r.Counts()[kind] == 0 {
				t.Errorf("seed %d: no operation is %q: %v", seed, kind, r.Counts())
			}
		}
	}
}

func TestOneNodeKeepsItsPromisesUnderFaults(t *testing.T) {
	t.Parallel()
	try(t, jepsen.Trial{Name: "one", Nodes: 1})
}

func TestThreeNodesKeepTheirPromisesUnderFaults(t *testing.T) {
	t.Parallel()
	try(t, jepsen.Trial{Name: "three", Nodes: 3})
}

// TestTheRecipeThatSplitNATSDoesNotSplit runs it from one node on or, in long runs, from each.
func TestTheRecipeThatSplitNATSDoesNotSplit(t *testing.T) {
	t.Parallel()
	usurp(t, jepsen.Trial{Name: "usurp", Nodes: 5})
}

// TestTheRecipeDoesNotSplitReplicatedStreams is where it matters: what the victim acknowledged was in its memory alone, and
// TestTheRecipeDoesNotSplitReplicatedStreams is where it matters: what the victim acknowledged was in its memory alone, and
// is gone with its power (trial S41).
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
