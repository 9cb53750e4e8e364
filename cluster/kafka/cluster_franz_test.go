package kafka_test

import (
	"cmp"
	"os"
	"strings"
	"testing"
)

// The Go client's own suite against three nodes, three replicas of everything: its tests of
// groups and transactions, and all of them in the nightly run (DAYBOOK_SEEDS).
func TestFranzGoSuitePassesOnThreeNodes(t *testing.T) {
	nodes := processes(t, 3)
	args := []string{"-run", "^(TestTxnEtl|TestGroupETL)$"}
	if os.Getenv("DAYBOOK_SEEDS") != "" {
		args = nil
	}
	results := runFranz(t, args, "KGO_SEEDS="+strings.Join(nodes[0].seeds, ","), "KGO_TEST_RF=3",
		"KGO_TEST_RECORDS="+cmp.Or(os.Getenv("KGO_TEST_RECORDS"), "2000"))
	checkPassed(t, results, "TestTxnEtl", "TestGroupETL")
	t.Log(slowest(results))
}
