package kafka_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestInternalTopicIsThereForWhoNamesItAndStaysEmpty(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		admin := b.admin()
		if all, err := admin.ListTopicsWithInternal(t.Context()); err != nil || len(all) != 0 {
			t.Fatalf("a new node has %v, %v", all.Names(), err)
		}
		named, err := admin.ListTopicsWithInternal(t.Context(), "__consumer_offsets")
		if err != nil || !named["__consumer_offsets"].IsInternal || named["__consumer_offsets"].Err != nil {
			t.Fatalf("the topic is %+v, %v", named, err)
		}
		b.topic("t", 1, nil)
		produce(t, b.client(), numbered("t", 1)...)
		c := b.client(kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"))
		consume(t, c, 1)
		if err := c.CommitUncommittedOffsets(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends, err := admin.ListEndOffsets(t.Context(), "__consumer_offsets")
		if o, _ := ends.Lookup("__consumer_offsets", 0); err != nil || o.Offset != 0 {
			t.Errorf("it ends at %d, %v; want 0", o.Offset, err)
		}
		if err := b.client().ProduceSync(t.Context(), &kgo.Record{Topic: "__consumer_offsets"}).FirstErr(); !errors.Is(err, kerr.InvalidTopicException) {
			t.Errorf("writing to it: %v, want INVALID_TOPIC_EXCEPTION", err)
		}
		visible, err := admin.ListTopics(t.Context())
		if err != nil || len(visible) != 1 {
			t.Errorf("topics are %v, %v; want t alone", visible.Names(), err)
		}
	})
}

func TestLargestBatchThatAStreamCanTakeIsTaken(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, map[string]string{"max.message.bytes": "12582912"})
		value := bytes.Repeat([]byte("v"), 12<<20-200)
		c := b.client(kgo.DefaultProduceTopic("t"), kgo.ProducerBatchMaxBytes(12<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
		produce(t, c, &kgo.Record{Value: value})
		b.restart()
		got := consume(t, b.client(kgo.ConsumeTopics("t"), kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(1<<20)), 1)
		if !bytes.Equal(got[0].Value, value) {
			t.Errorf("%d bytes came back, want the %d that were sent", len(got[0].Value), len(value))
		}
	})
}
