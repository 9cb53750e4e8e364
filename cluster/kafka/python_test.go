package kafka_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// pythonRoundTrip produces 1,000 records with each codec that Python has built in, reads
// them in a group, and prints how many came back whole, and where the group is then.
const pythonRoundTrip = `
import sys
from kafka import KafkaProducer, KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
addr = sys.argv[1]
admin = KafkaAdminClient(bootstrap_servers=addr)
for codec in (None, "gzip"):
    topic = "python-%s" % codec
    admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])
    producer = KafkaProducer(bootstrap_servers=addr, compression_type=codec, acks="all", linger_ms=5)
    for i in range(1000):
        producer.send(topic, key=b"k%d" % (i % 7), value=b"value %d" % i, headers=[("h", b"x")])
    producer.flush()
    consumer = KafkaConsumer(topic, bootstrap_servers=addr, group_id="g-%s" % codec, auto_offset_reset="earliest",
                             enable_auto_commit=False, consumer_timeout_ms=20000)
    got = set()
    for r in consumer:
        assert r.headers == [("h", b"x")], r.headers
        got.add((r.key, r.value))
        if len(got) == 1000:
            break
    consumer.commit()
    done = sum(consumer.committed(TopicPartition(topic, p)) or 0 for p in range(3))
    consumer.close()
    print(codec, len(got), done)
`

func TestPythonProducesAndConsumesInAGroup(t *testing.T) {
	b := newBroker(t, false)
	cmd, err := services.Python(t.Context(), pythonRoundTrip, b.addr)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "None 1000 1000\ngzip 1000 1000" {
		t.Errorf("Python says\n%s", got)
	}
}
