package kafka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/retry"
)

// Kafka's own clients on three nodes, of which the one that leads is killed, and in the
// nightly run one after the other: what the producer was told is stored is there, once and
// in order, and a consumer in a group gets all of it meanwhile. In the nightly run those for
// the console take part, too.
func TestJavaClientsOutliveNodes(t *testing.T) {
	records, kills := 3000, 1
	if nightly() {
		records, kills = 30_000, 5
	}
	nodes := processes(t, 3)
	adm := kadm.NewClient(nodes[0].client())
	if r, err := adm.CreateTopic(t.Context(), 3, 3, nil, "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	// Left alone the tool tries nothing again.
	settings := filepath.Join(t.TempDir(), "producer.properties")
	if err := os.WriteFile(settings, []byte("retries=2147483647\nenable.idempotence=true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seeds := strings.Join(nodes[0].seeds, ",")
	var both sync.WaitGroup
	var sent, got string
	verifiable := consumeVerifiably(t, seeds, "t")
	both.Go(func() {
		sent = tool(t, nil, "", "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", seeds, "--topic", "t", "--acks", "-1",
			"--max-messages", fmt.Sprint(records), "--throughput", "1000", "--command-config", settings)
	})
	if nightly() {
		both.Go(func() { // it ends when nothing has come for a while
			got = tool(t, nil, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", seeds, "--topic", "t", "--group", "g",
				"--from-beginning", "--timeout-ms", "180000")
		})
		both.Go(func() { produceLines(t, seeds, "lines", records, settings) })
	}
	for i := range kills {
		want := int64(records) * int64(i+1) / int64(kills+1)
		eventually(t, "the producer gets on", func() error {
			ends, err := adm.ListEndOffsets(t.Context(), "t")
			if err != nil {
				return err
			}
			n := int64(0)
			ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
			if n < want {
				return fmt.Errorf("%d records are there, want %d", n, want)
			}
			return nil
		})
		c := leads(t, adm, nodes)
		c.kill()
		retry.Pause(t.Context(), time.Second) // clients have to do without it
		c.start()
	}
	both.Wait()
	if want := fmt.Sprintf(`"sent":%d,"acked":%d`, records, records); !strings.Contains(sent, want) {
		t.Errorf("the producer ends with\n%s", sent[max(0, len(sent)-1000):])
	}
	checkOnce(t, nodes[0], "t", records)
	verifiable.check(adm)
	if nightly() {
		checkGot(t, got, records)
		checkOnce(t, nodes[0], "lines", records)
	}
}

// checkGot wants each record in what the consumer wrote; some may stand there twice.
func checkGot(t *testing.T, got string, records int) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(got) {
		seen[strings.TrimSpace(line)] = true
	}
	for i := range records {
		if !seen[fmt.Sprint(i)] {
			t.Fatalf("the consumer did not get record %d; it says\n%.2000s", i, got)
		}
	}
}

// leads waits until the cluster names a node that leads a partition.
func leads(t *testing.T, adm *kadm.Client, nodes []*child) (c *child) {
	t.Helper()
	eventually(t, "a leader", func() error {
		found, err := adm.Metadata(t.Context(), "t")
		if err != nil {
			return err
		}
		p, ok := found.Topics["t"].Partitions[0]
		if !ok || p.Leader < 1 {
			return fmt.Errorf("partition %+v", p)
		}
		c = nodes[p.Leader-1]
		return nil
	})
	return c
}

// checkOnce reads the topic: so many records, each number once, and in each partition in order.
func checkOnce(t *testing.T, c *child, topic string, records int) {
	t.Helper()
	last, seen := map[int32]int{}, map[int]bool{}
	for _, r := range consume(t, c.client(kgo.ConsumeTopics(topic)), records) {
		n, err := strconv.Atoi(string(r.Value))
		if err != nil {
			t.Fatal(err)
		}
		before, any := last[r.Partition]
		if seen[n] || any && n <= before {
			t.Fatalf("record %d at %d of partition %d comes after %d, or again", n, r.Offset, r.Partition, before)
		}
		seen[n], last[r.Partition] = true, n
	}
}
