package kafka_test

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The Go client's own suite against three nodes, three replicas of everything: its tests of
// groups and transactions, and all of them in the nightly run (DAYBOOK_SEEDS).
func TestFranzGoSuitePassesOnThreeNodes(t *testing.T) {
	franzOnThreeNodes(t, processes(t, 3))
}

// The same while one node after the other is restarted, every 15 s in the nightly run. (A
// group's member whose coordinator is killed while it joins is told so by its client, which the
// suite does not have.)
func TestFranzGoSuitePassesWhileNodesRestart(t *testing.T) {
	every := 4 * time.Second
	if nightly() {
		every = 15 * time.Second
	}
	nodes := processes(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var restarting sync.WaitGroup
	restarts := 0
	restarting.Go(func() {
		for pause(ctx, every/2); ctx.Err() == nil; pause(ctx, every) {
			if err := nodes[restarts%len(nodes)].restart(); err != nil {
				t.Error(err)
				return
			}
			restarts++
		}
	})
	franzOnThreeNodes(t, nodes)
	cancel()
	restarting.Wait()
	t.Logf("%d restarts", restarts)
	if restarts == 0 {
		t.Error("no node was restarted")
	}
}

func franzOnThreeNodes(t *testing.T, nodes []*child) {
	t.Helper()
	args := []string{"-run", "^(TestTxnEtl|TestGroupETL)$"}
	if nightly() {
		args = nil
	}
	results := runFranz(t, args, "KGO_SEEDS="+strings.Join(nodes[0].seeds, ","), "KGO_TEST_RF=3",
		"KGO_TEST_RECORDS="+cmp.Or(os.Getenv("KGO_TEST_RECORDS"), "2000"))
	checkPassed(t, results, "TestTxnEtl", "TestGroupETL")
	t.Log(slowest(results))
}

func nightly() bool { return os.Getenv("DAYBOOK_SEEDS") != "" }
