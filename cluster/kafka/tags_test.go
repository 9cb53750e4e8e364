package kafka_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// tables produces rounds of one batch for each of the tables "shop.t0" and on, to one partition, and waits until a
// consumer of a tag is spared what it does not want.
func tables(t *testing.T, b *broker, topic string, tables, rounds int) {
	t.Helper()
	b.topic(topic, 1, map[string]string{"daybook.tag.index": "true"})
	c := b.client()
	for i := range rounds {
		for table := range tables {
			produce(t, c, &kgo.Record{
				Topic: topic, Value: fmt.Appendf(nil, "t%d-%d", table, i),
				Headers: []kgo.RecordHeader{{Key: "daybook.table", Value: fmt.Appendf(nil, "shop.t%d", table)}},
			})
		}
	}
	indexed(t, b, topic)
}

func indexed(t *testing.T, b *broker, topic string) {
	t.Helper()
	c := byName(b)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if p := fetchTag(t, c, topic+"@nothing", 0); len(p.RecordBatches) == 61 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the tag index did not come")
		}
	}
}

// byName is a client that names topics in Fetch, as all do for a topic without an id.
func byName(b *broker) *kgo.Client {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.Fetch), 12)
	return b.client(kgo.MaxVersions(v))
}

// fetchTag fetches once, without waiting for long.
func fetchTag(t *testing.T, c *kgo.Client, topic string, offset int64) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.MaxWaitMillis = -1, 1, 1<<20, 10
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes, p.FetchOffset = -1, -1, 1<<20, offset
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatalf("fetching: %v", err)
	}
	if len(resp.Topics) != 1 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("fetching %s: %+v", topic, resp)
	}
	return resp.Topics[0].Partitions[0]
}

func TestAConsumerOfATagReadsOnlyItsBatches(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		tables(t, b, "t", 10, 6)
		c := b.client(kgo.ConsumeTopics("t@shop.t3"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		for i, r := range consume(t, c, 6) {
			if want := fmt.Sprintf("t3-%d", i); string(r.Value) != want || r.Offset != int64(10*i+3) || r.Topic != "t@shop.t3" {
				t.Errorf("record %d is %s at %s/%d, want %s at offset %d", i, r.Value, r.Topic, r.Offset, want, 10*i+3)
			}
		}
		produce(t, b.client(), &kgo.Record{Topic: "t", Value: []byte("mine"), Headers: []kgo.RecordHeader{{Key: "daybook.tag", Value: []byte("shop.t3")}}})
		if r := consume(t, c, 1)[0]; string(r.Value) != "mine" {
			t.Errorf("next came %s", r.Value)
		}
		b.restart()
		indexed(t, b, "t") // until then all is served
		c = b.client(kgo.ConsumeTopics("t@shop.t4"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		consume(t, c, 6)
	})
}

// Consumers go on behind what is left out, else they would ask for it again and again and never be up to date.
func TestConsumersAdvanceOverWhatATagLeavesOut(t *testing.T) {
	b := newBroker(t, false)
	tables(t, b, "t", 10, 3)
	for _, c := range []struct {
		tag  string
		from int64
		want int
	}{{"nothing", 0, 0}, {"shop.t3", 24, 0}, {"shop.t3", 0, 3}} {
		p := fetchTag(t, byName(b), "t@"+c.tag, c.from)
		got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t@" + c.tag, Offset: c.from}, &p, kgo.DefaultDecompressor(), nil)
		if got.Err != nil || len(got.Records) != c.want || next != 30 {
			t.Errorf("%s from %d: %d records, next offset %d, %v; want %d records and offset 30", c.tag, c.from, len(got.Records), next, got.Err, c.want)
		}
	}
	// kcat ends where the partition does: it gets there only over the gaps.
	if got := kcat(t, b, "", "-C", "-t", "t@shop.t3", "-e", "-q"); got != "t3-0\nt3-1\nt3-2\n" {
		t.Errorf("kcat read %q", got)
	}
	out := tool(t, b, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", b.addr, "--topic", "t@shop.t3",
		"--group", "g", "--from-beginning", "--timeout-ms", "10000")
	if strings.Count(out, "t3-") != 3 || strings.Contains(out, "t4-") {
		t.Errorf("the Java consumer read\n%s", out)
	}
	described := tool(t, b, "", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", b.addr, "--describe", "--group", "g")
	fields := strings.Fields(described[strings.Index(described, "\ng "):])
	if len(fields) < 6 || fields[1] != "t@shop.t3" || fields[5] != "0" {
		t.Errorf("the group is described as\n%s", described)
	}
}

// What a group has read of a tag says nothing of the rest.
func TestOffsetsOfATagAreItsOwn(t *testing.T) {
	b := newBroker(t, false)
	tables(t, b, "t", 4, 5)
	for topic, want := range map[string]int{"t@shop.t1": 5, "t": 20} {
		c := b.client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup("g"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		consume(t, c, want)
		if err := c.CommitUncommittedOffsets(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	// A group goes on where it was, by either name.
	for _, r := range []*kgo.Record{
		{Topic: "t", Value: []byte("other"), Headers: []kgo.RecordHeader{{Key: "daybook.table", Value: []byte("shop.t2")}}},
		{Topic: "t", Value: []byte("mine"), Headers: []kgo.RecordHeader{{Key: "daybook.table", Value: []byte("shop.t1")}}},
	} {
		produce(t, b.client(), r)
	}
	indexed(t, b, "t")
	for topic, want := range map[string][]string{"t@shop.t1": {"mine"}, "t": {"other", "mine"}} {
		c := b.client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup("g"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if got := consume(t, c, len(want))[0]; string(got.Value) != want[0] {
			t.Errorf("the group goes on in %s with %s, want %s", topic, got.Value, want[0])
		}
		c.Close()
	}
	stream, _ := b.node.Meta().Stream("t")
	for tag, want := range map[string]int64{"shop.t1": 18, "": 20} {
		o, ok, _ := b.node.Meta().GroupOffset("g", metadata.StreamPartition{Stream: stream.ID, Tag: tag})
		if !ok || o.Offset != want {
			t.Errorf("tag %q is committed at %d, want %d", tag, o.Offset, want)
		}
	}
}

func TestNobodyWritesByATag(t *testing.T) {
	b := newBroker(t, false)
	tables(t, b, "t", 1, 1)
	err := b.client().ProduceSync(t.Context(), &kgo.Record{Topic: "t@shop.t0", Value: []byte("x")}).FirstErr()
	if !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("producing to a tag: %v, want INVALID_TOPIC_EXCEPTION", err)
	}
	deleted, err := b.admin().DeleteRecords(t.Context(), offsetsOf("t@shop.t0", 0, 1))
	if err == nil {
		err = deleted.Error()
	}
	if err == nil {
		t.Error("records were deleted by the name of a tag")
	}
	for topic, want := range map[string]*kerr.Error{"none@x": kerr.UnknownTopicOrPartition, "@x": kerr.InvalidTopicException, "t@": kerr.InvalidTopicException} {
		req := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, rt)
		req.AllowAutoTopicCreation = true
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil {
			t.Fatal(err)
		}
		if got := kerr.ErrorForCode(resp.Topics[0].ErrorCode); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", topic, got, want)
		}
	}
}
