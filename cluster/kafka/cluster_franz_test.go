package kafka_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-data/daybook/internal/retry"
)

// The Go client's own suite against three nodes, three replicas of everything: its tests of
// groups, and all of them in the nightly run (DAYBOOK_SEEDS).
func TestFranzGoSuitePassesOnThreeNodes(t *testing.T) {
	franzOnThreeNodes(t, processes(t, 3), "TestGroupETL")
}

// The same, and by day those of transactions in groups, while nodes are restarted: in the nightly run one after the other, every 15 s, else those
// that do not coordinate groups. (Whoever joins a group while its coordinator is gone for longer
// than the client tries is told so, which the suite takes for a failure.)
func TestFranzGoSuitePassesWhileNodesRestart(t *testing.T) {
	every := 4 * time.Second
	if nightly() {
		every = 15 * time.Second
	}
	nodes := processes(t, 3)
	adm := kadm.NewClient(nodes[0].client())
	ctx, cancel := context.WithCancel(t.Context())
	var restarting sync.WaitGroup
	restarts := 0
	restarting.Go(func() {
		for at := 0; ctx.Err() == nil; at++ {
			c := nodes[at%len(nodes)]
			if !nightly() && coordinates(ctx, adm, c) {
				continue
			}
			if retry.Pause(ctx, every/2); ctx.Err() != nil {
				return
			}
			if err := c.restart(); err != nil {
				t.Error(err)
				return
			}
			restarts++
			retry.Pause(ctx, every/2)
		}
	})
	franzOnThreeNodes(t, nodes, "TestTxnEtl")
	cancel()
	restarting.Wait()
	t.Logf("%d restarts", restarts)
	if restarts == 0 {
		t.Error("no node was restarted")
	}
}

// coordinates says whether a node coordinates groups, or may do so as nobody says who does.
func coordinates(ctx context.Context, adm *kadm.Client, c *child) bool {
	found := adm.FindGroupCoordinators(ctx, "any")["any"]
	if found.Err != nil {
		retry.Pause(ctx, 100*time.Millisecond)
		return true
	}
	return c.addr == fmt.Sprintf("%s:%d", found.Host, found.Port)
}

// franzOnThreeNodes runs one test of the suite, and all of them in the nightly run.
func franzOnThreeNodes(t *testing.T, nodes []*child, test string) {
	t.Helper()
	args, want := []string{"-run", "^" + test + "$"}, []string{test}
	if nightly() {
		args, want = nil, []string{"TestTxnEtl", "TestGroupETL"}
	}
	results := runFranz(t, args, "KGO_SEEDS="+strings.Join(nodes[0].seeds, ","), "KGO_TEST_RF=3",
		"KGO_TEST_RECORDS="+cmp.Or(os.Getenv("KGO_TEST_RECORDS"), "2000"))
	checkPassed(t, results, want...)
	t.Log(slowest(results))
}

func nightly() bool { return os.Getenv("DAYBOOK_SEEDS") != "" }
