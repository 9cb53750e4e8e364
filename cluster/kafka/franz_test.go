package kafka_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// franzSkips are the tests of franz-go's suite that may skip themselves: what Daybook
// does not offer, and one that has a broker of its own below.
var franzSkips = regexp.MustCompile(`848|Share|^` + tooOldTest + `$`)

// tooOldTest is about a client that knows no version of Produce which the broker takes.
// It skips itself where version 2 is listed, and so against Apache Kafka 4 as well: that
// too lists Produce from version 0 on, for librdkafka's sake (KAFKA-18659), and refuses
// what is older than 3.
const tooOldTest = "TestIssueProduceBrokerTooOldFailsRecords"

// The suite of the Go client that we are used by, of the version in go.mod. Its own
// variable sets how many records it takes per test.
func TestFranzGoSuitePasses(t *testing.T) {
	b := newFranzBroker(t)
	b.user("admin", "admin-secret")
	scramAddr := b.also(kafka.Access{Mechanisms: []string{kafka.MechanismScramSHA256}})
	results := runFranz(t, nil, "KGO_SEEDS="+b.addr,
		"KGO_TEST_SCRAM_SEEDS="+scramAddr, "KGO_TEST_SCRAM=admin:admin-secret:256",
		"KGO_TEST_OAUTH_SEEDS="+b.also(byToken), // it logs in by tokens that nobody has signed
		"KGO_TEST_RECORDS="+cmp.Or(os.Getenv("KGO_TEST_RECORDS"), "20000"))
	for name, r := range results {
		if r.action == "skip" && !franzSkips.MatchString(name) {
			t.Errorf("%s skipped itself:\n%s", name, r.output)
		}
	}
	// That it has run is a matter of what has passed.
	checkPassed(t, results, "TestTxnEtl", "TestGroupETL", "TestSCRAMAuth", "TestSCRAMAuthBadCredentials", "TestOAuthAuth", "TestConsumeRegex", "TestClient_Produce")
	t.Log(slowest(results))
}

// The one test that asks for a broker which does not list the oldest versions of Produce
// gets one: the same broker behind a wire on which they are taken off the list.
func TestFranzGoSuitePassesWithoutOldProduce(t *testing.T) {
	b := newFranzBroker(t)
	front := listen(t, "127.0.0.1:0")
	withoutOldProduce(t, front, b.also(kafka.Access{Advertised: front.Addr().String()}))
	checkPassed(t, runFranz(t, []string{"-run", "^" + tooOldTest + "$"}, "KGO_SEEDS="+front.Addr().String()), tooOldTest)
}

func newFranzBroker(t *testing.T) *broker {
	t.Helper()
	return newBroker(t, false, func(c *cluster.Options, k *kafka.Options) {
		c.SegmentBytes, c.Logger, k.Logger = 64<<20, nil, nil
	})
}

// runFranz runs the suite and fails the test for each that fails.
func runFranz(t *testing.T, args []string, env ...string) map[string]result {
	t.Helper()
	args = append([]string{"test", "-json", "-count=1", "-timeout=1h"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "github.com/twmb/franz-go/pkg/kgo")...)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KGO_LOG_LEVEL=none",
		"KGO_TEST_RF=1", "KGO_TEST_UNSAFE=1") // a transaction may begin while the last one ends
	cmd.Env = append(cmd.Env, env...)
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
	return results
}

func checkPassed(t *testing.T, results map[string]result, names ...string) {
	t.Helper()
	for _, name := range names {
		if r := results[name]; r.action != "pass" {
			t.Errorf("%s did not pass, but %q\n%.2000s", name, r.action, r.output)
		}
	}
}

// result is what became of one test.
type result struct {
	action  string
	elapsed float64 // seconds
	output  string
}

// readResults reads what go test -json writes.
func readResults(t *testing.T, r *bufio.Reader) map[string]result {
	t.Helper()
	results := map[string]result{}
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return results
		}
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("go test wrote %q", line)
		}
		one := results[e.Test]
		switch e.Action {
		case "output":
			one.output += e.Output
		case "pass", "fail", "skip":
			one.action, one.elapsed = e.Action, e.Elapsed
		}
		results[e.Test] = one
	}
}

// slowest names the tests that took longest.
func slowest(results map[string]result) string {
	var names []string
	passed := 0
	for name, r := range results {
		if r.action == "pass" {
			passed++
		}
		if name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(results[b].elapsed, results[a].elapsed) })
	text := fmt.Sprintf("%d passed; slowest:", passed)
	for _, name := range names[:min(5, len(names))] {
		text += fmt.Sprintf(" %s %.1fs", name, results[name].elapsed)
	}
	return text
}
