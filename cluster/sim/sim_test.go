package sim_test

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// seedVariable names one seed to run, with all of its trace.
	seedVariable = "DAYBOOK_SIM_SEED"
	// kindsVariable names the kinds of faults that there are instead of those that a seed draws, with commas between them.
	kindsVariable = "DAYBOOK_SIM_KINDS"
	// seeds is how many a run of the tests takes; DAYBOOK_SEEDS multiplies it.
	seeds = 25
	// hung is after how much real time a seed is taken for hung, and endless after how much fake time.
	hung    = 10 * time.Minute
	endless = 2 * time.Hour
)

// simulate runs a seed and returns what was violated.
func simulate(t *testing.T, seed int64, change func(*settings), h hooks) (tr *trace) {
	s := settingsOf(rand.New(rand.NewSource(seed)))
	if change != nil {
		change(&s)
	}
	tr = &trace{}
	dog := time.AfterFunc(hung, func() { // outside of the bubble, whose clock may stand still
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d hangs\n%v", seed, tr))
	})
	defer dog.Stop()
	defer forgiveLost(tr)
	synctest.Test(t, func(t *testing.T) {
		end := time.AfterFunc(endless, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("seed %d does not end\n%v", seed, tr))
		})
		defer end.Stop()
		newWorld(t, seed, s, tr, h).run()
	})
	return tr
}

// forgiveLost recovers what synctest says of goroutines that outlive the simulation, if all of them wait for what raft,
// shut down, never does: keep a promise, which the group leaves behind on purpose. Any other is a violation, a hand-over that
// does not end among them: see HandTo.
func forgiveLost(tr *trace) {
	p := recover()
	if p == nil {
		return
	}
	if !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
		panic(p)
	}
	all := make([]byte, 4<<20)
	for _, g := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(g, "synctest.Run") && !raftWaits(g) {
			tr.mu.Lock()
			tr.bad = append(tr.bad, "a goroutine outlives its group: "+g)
			tr.mu.Unlock()
		}
	}
}

func raftWaits(goroutine string) bool { return strings.Contains(goroutine, "raft.(*deferError).Error") }

// The groups keep their promises under whatever a seed makes of disks, networks, machines and operators.
func TestTheGroupsKeepTheirPromises(t *testing.T) {
	first, n := int64(1), int64(seeds)
	if v := os.Getenv("DAYBOOK_SEEDS"); v != "" {
		times, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatalf("DAYBOOK_SEEDS is %q, want a number", v)
		}
		n *= times
	}
	one := os.Getenv(seedVariable)
	if one != "" {
		var err error
		if first, err = strconv.ParseInt(one, 10, 64); err != nil {
			t.Fatalf("%s is %q, want a number", seedVariable, one)
		}
		n = 1
	}
	if v := os.Getenv("DAYBOOK_SIM_FROM"); v != "" {
		first, _ = strconv.ParseInt(v, 10, 64)
	}
	change := onlyKinds(os.Getenv(kindsVariable))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the fewer threads, the more often a seed gives the same run
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			tr := simulate(t, seed, change, hooks{})
			bad := tr.violations()
			if one != "" {
				t.Logf("\n%s", tr.tail(1<<30))
			}
			if len(bad) > 0 {
				t.Errorf("seed %d (run it alone with %s=%d):\n%s\n%v", seed, seedVariable, seed, lines(bad), tr)
			}
		})
	}
}

// onlyKinds changes settings to have faults of the named kinds; nil if none is named.
func onlyKinds(names string) func(*settings) {
	if names == "" {
		return nil
	}
	return func(s *settings) {
		s.kinds = nil
		for _, name := range strings.Split(names, ",") {
			s.kinds = append(s.kinds, kind(name))
		}
		s.machines = s.founders
		if slices.Contains(s.kinds, changeMembers) {
			s.machines++
		}
	}
}

func lines(all []string) string {
	s := ""
	for _, l := range all {
		s += "\t" + l + "\n"
	}
	return s
}
