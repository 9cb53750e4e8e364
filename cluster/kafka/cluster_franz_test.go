package kafka_test

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The Go client's own suite against three nodes, three replicas of everything: its tests of
// groups and transactions, and all of them in the nightly run (DAYBOOK_SEEDS).
func TestFranzGoSuitePassesOnThreeNodes(t *testing.T) {
	nodes := processes(t, 3)
	args := []string{"test", "-json", "-count=1", "-timeout=1h", "-run", "^(TestTxnEtl|TestGroupETL)$"}
	if os.Getenv("DAYBOOK_SEEDS") != "" {
		args = args[:4]
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "github.com/twmb/franz-go/pkg/kgo")...)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KGO_LOG_LEVEL=none",
		"KGO_SEEDS="+strings.Join(nodes[0].seeds, ","), "KGO_TEST_RF=3", "KGO_TEST_UNSAFE=1",
		"KGO_TEST_RECORDS="+cmp.Or(os.Getenv("KGO_TEST_RECORDS"), "2000"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	results := readResults(t, bufio.NewReader(stdout))
	if err := cmd.Wait(); err != nil {
		t.Errorf("the suite: %v\n%s", err, stderr.String())
	}
	for name, r := range results {
		if r.action == "fail" && name != "" {
			t.Errorf("%s failed:\n%.4000s", name, r.output)
		}
	}
	for _, name := range []string{"TestTxnEtl", "TestGroupETL"} {
		if results[name].action != "pass" {
			t.Errorf("%s did not pass, but %q", name, results[name].action)
		}
	}
	t.Log(slowest(results))
}
