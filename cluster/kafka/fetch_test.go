package kafka_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func epoch(ms int64) time.Time { return time.UnixMilli(ms) }

// fetchRaw asks for one partition and returns the answer as it came.
func fetchRaw(t *testing.T, b *broker, topic string, change func(*kmsg.FetchRequest, *kmsg.FetchRequestTopicPartition)) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes = -1, 1, 1<<20
	topicReq := kmsg.NewFetchRequestTopic()
	topicReq.Topic, topicReq.TopicID = topic, b.topicID(topic)
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes = -1, -1, 1<<20
	change(req, &p)
	topicReq.Partitions = append(topicReq.Partitions, p)
	req.Topics = append(req.Topics, topicReq)
	resp, err := req.RequestWith(t.Context(), b.client())
	if err != nil {
		t.Fatalf("fetching: %v", err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("answer is not for one partition: %+v", resp)
	}
	return resp.Topics[0].Partitions[0]
}

// rawBatches returns the bytes of a topic's first partition from an offset on.
func rawBatches(t *testing.T, b *broker, topic string, offset int64) []byte {
	t.Helper()
	p := fetchRaw(t, b, topic, func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = offset })
	if p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		t.Fatalf("no batches of %s: %v", topic, kerr.ErrorForCode(p.ErrorCode))
	}
	return p.RecordBatches
}

// A fetch in the middle of a batch skipped it, or hung at the last one.
func TestFetchInTheMiddleOfABatchReturnsTheWholeBatch(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("t", 10)...) // one batch
		for offset := range int64(10) {
			c := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(offset)}}))
			got := consume(t, c, int(10-offset))
			if got[0].Offset != offset {
				t.Errorf("consuming from %d began at %d", offset, got[0].Offset)
			}
			c.Close()
			if batch := rawBatches(t, b, "t", offset); len(batch) != len(rawBatches(t, b, "t", 0)) {
				t.Errorf("fetch at %d returned %d bytes, not the whole batch", offset, len(batch))
			}
		}
	})
}

func TestBatchLargerThanTheLimitsIsStillReturned(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(kgo.ProducerBatchCompression(kgo.NoCompression())), &kgo.Record{Topic: "t", Value: make([]byte, 300_000)})
		p := fetchRaw(t, b, "t", func(r *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
			r.MaxBytes, p.PartitionMaxBytes = 1, 1
		})
		if len(p.RecordBatches) < 300_000 {
			t.Errorf("got %d bytes, want the batch", len(p.RecordBatches))
		}
	})
}

func TestFetchWaitsForRecordsAndNotLonger(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := b.client()
		produce(t, c, numbered("t", 1)...)
		start := time.Now()
		p := fetchRaw(t, b, "t", func(r *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
			p.FetchOffset, r.MaxWaitMillis = 1, 150
		})
		if waited := time.Since(start); len(p.RecordBatches) != 0 || waited < 150*time.Millisecond {
			t.Errorf("fetch at the end returned %d bytes after %v, want none after 150ms", len(p.RecordBatches), waited)
		}
		done := make(chan kmsg.FetchResponseTopicPartition, 1)
		go func() {
			done <- fetchRaw(t, b, "t", func(r *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
				p.FetchOffset, r.MaxWaitMillis = 1, 60_000
			})
		}()
		produce(t, c, numbered("t", 1)...)
		select {
		case p := <-done:
			if len(p.RecordBatches) == 0 {
				t.Error("fetch returned without the new record")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("fetch did not see the new record")
		}
	})
}

func TestOffsetsOutsideThePartitionAreRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("t", 5)...)
		for _, offset := range []int64{-1, 6, 1 << 60} {
			p := fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = offset })
			if err := kerr.ErrorForCode(p.ErrorCode); !errors.Is(err, kerr.OffsetOutOfRange) {
				t.Errorf("fetch at %d of 0 to 5: %v, want OFFSET_OUT_OF_RANGE", offset, err)
			}
		}
	})
}

func TestDeletedRecordsAreGoneAndTheStartStays(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		for range 3 {
			produce(t, b.client(), numbered("t", 4)...)
		}
		deleted, err := b.admin().DeleteRecords(t.Context(), offsetsOf("t", 0, 6))
		if err != nil || deleted.Error() != nil {
			t.Fatal(err, deleted.Error())
		}
		check := func() {
			t.Helper()
			start, err := b.admin().ListStartOffsets(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			if o, _ := start.Lookup("t", 0); o.Offset != 6 {
				t.Errorf("log starts at %d, want 6", o.Offset)
			}
			p := fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = 5 })
			if p.ErrorCode != kerr.OffsetOutOfRange.Code {
				t.Errorf("deleted offset 5 answers %v, want OFFSET_OUT_OF_RANGE", kerr.ErrorForCode(p.ErrorCode))
			}
			c := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
			if got := consume(t, c, 6); got[0].Offset != 6 {
				t.Errorf("consuming from the start began at %d, want 6", got[0].Offset)
			}
		}
		check()
		b.restart()
		check()
	})
}

func TestEveryPartitionOfAManyPartitionTopicIsItsOwn(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 20, map[string]string{"daybook.journals": "3"})
		c := b.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for i := range 200 {
			c.Produce(t.Context(), &kgo.Record{Topic: "t", Partition: int32(i % 20), Value: fmt.Append(nil, i)}, nil)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.restart()
		next := map[int32]int64{}
		for _, r := range consume(t, b.client(kgo.ConsumeTopics("t")), 200) {
			if want := fmt.Sprint(int64(r.Partition) + 20*next[r.Partition]); string(r.Value) != want || r.Offset != next[r.Partition] {
				t.Fatalf("partition %d offset %d holds %s, want %s", r.Partition, r.Offset, r.Value, want)
			}
			next[r.Partition]++
		}
	})
}

func TestFetchOfManyPartitionsKeepsToItsLimitAndReachesAllOfThem(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		const partitions = 10
		b.topic("t", partitions, nil)
		c := b.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
		for p := range int32(partitions) {
			produce(t, c, &kgo.Record{Topic: "t", Partition: p, Value: make([]byte, 100<<10)})
		}
		reader := b.client(kgo.ConsumeTopics("t"), kgo.FetchMaxBytes(250<<10))
		seen := map[int32]bool{}
		for _, r := range consume(t, reader, partitions) {
			seen[r.Partition] = true
		}
		if len(seen) != partitions {
			t.Errorf("%d partitions were read, want %d", len(seen), partitions)
		}
		req := kmsg.NewPtrFetchRequest()
		req.ReplicaID, req.MinBytes, req.MaxBytes = -1, 1, 250<<10
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = "t", b.topicID("t")
		for i := range int32(partitions) {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes = i, -1, -1, 1<<20
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, p := range resp.Topics[0].Partitions {
			total += len(p.RecordBatches)
		}
		if total < 200<<10 || total > 250<<10 {
			t.Errorf("the answer has %d KiB, want two batches of 100 within 250", total>>10)
		}
	})
}
