package kafka_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// tool runs one of Apache Kafka's own tools against the broker.
func tool(t *testing.T, b *broker, input, class string, args ...string) string {
	t.Helper()
	return toolOn(t, strings.NewReader(input), class, args...)
}

// toolOn runs one of Kafka's tools on what it reads, and returns what it says.
func toolOn(t *testing.T, input io.Reader, class string, args ...string) string {
	t.Helper()
	cmd, err := services.KafkaTool(t.Context(), class, args...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = input
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", class, args, err, out)
	}
	return string(out)
}

// The Java producer is idempotent unless told otherwise, and the Java consumer
// the one that most others copy.
func TestJavaClientsProduceAndConsumeInAGroup(t *testing.T) {
	b := newBroker(t, false)
	var want []string
	for i := range 1000 {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	tool(t, b, "", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", b.addr, "--create", "--topic", "t", "--partitions", "3", "--config", "retention.ms=-1")
	tool(t, b, strings.Join(want, "\n")+"\n", "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", b.addr, "--topic", "t", "--compression-codec", "zstd")
	out := tool(t, b, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", b.addr, "--topic", "t",
		"--group", "g", "--from-beginning", "--max-messages", "1000", "--timeout-ms", "60000")
	var got []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "line ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d lines came back, want the %d that were sent:\n%.2000s", len(got), len(want), out)
	}
	described := tool(t, b, "", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", b.addr, "--describe", "--group", "g")
	if strings.Count(described, "\ng ") != 3 {
		t.Errorf("the group is described as\n%s", described)
	}
}

func TestJavaProducerSendsTransactions(t *testing.T) {
	b := newBroker(t, false)
	b.topic("t", 2, nil)
	tool(t, b, "", "org.apache.kafka.tools.ProducerPerformance", "--topic", "t", "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
		"--producer-props", "bootstrap.servers="+b.addr, "compression.type=lz4", "transactional.id=id", "--transaction-duration-ms", "50")
	if got := committed(t, b, 5000); len(got) != 5000 {
		t.Errorf("%d records are committed, want 5000", len(got))
	}
	// Version 2 of transactions raises the epoch with each of them.
	if txn, ok := b.node.Meta().Transaction("id"); !ok || txn.Epoch < 2 {
		t.Errorf("the producer's epoch is %+v, want it raised by every transaction", txn)
	}
}

// The verifiable tools count and check what they send and receive themselves.
func TestVerifiableToolsAgree(t *testing.T) {
	b := newBroker(t, false)
	b.topic("t", 3, nil)
	sent := tool(t, b, "", "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", b.addr, "--topic", "t", "--max-messages", "2000", "--acks", "-1")
	if !strings.Contains(sent, `"sent":2000,"acked":2000`) {
		t.Errorf("the producer ends with\n%s", sent[max(0, len(sent)-300):])
	}
	got := tool(t, b, "", "org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", b.addr, "--topic", "t", "--group-id", "g", "--max-messages", "2000")
	n := 0
	for line := range strings.Lines(got) {
		var event struct {
			Name  string
			Count int
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Name == "records_consumed" {
			n += event.Count
		}
	}
	if n != 2000 || !strings.Contains(got, `"name":"offsets_committed"`) || strings.Contains(got, `"success":false`) {
		t.Errorf("the consumer took %d records, want 2000, and says\n%.3000s", n, got)
	}
}
