package kafka_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestRecordsComeBackAsTheyWereSent(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		sent := produce(t, b.client(kgo.DefaultProduceTopic("t")),
			&kgo.Record{Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{0, 255}}}},
			&kgo.Record{Key: nil, Value: nil},
			&kgo.Record{Key: []byte{}, Value: []byte{}},
		)
		got := consume(t, b.client(kgo.ConsumeTopics("t")), len(sent))
		for i, r := range got {
			if r.Offset != int64(i) || !bytes.Equal(r.Key, sent[i].Key) || !bytes.Equal(r.Value, sent[i].Value) ||
				(r.Value == nil) != (sent[i].Value == nil) || len(r.Headers) != len(sent[i].Headers) ||
				r.Timestamp.UnixMilli() != sent[i].Timestamp.UnixMilli() {
				t.Errorf("record %d is %+v, sent was %+v", i, r, sent[i])
			}
		}
	})
}

// An idempotent producer has five requests in flight and relies on the broker to
// keep their order per partition.
func TestConcurrentIdempotentProducersKeepTheirOrder(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		const producers, each, partitions = 4, 3000, 3
		b.topic("t", partitions, nil)
		var all sync.WaitGroup
		for p := range producers {
			all.Go(func() {
				c := b.client(kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
					kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(4<<10))
				var sent sync.WaitGroup
				for i := range each {
					sent.Add(1)
					c.Produce(t.Context(), &kgo.Record{
						Partition: int32(i % partitions),
						Key:       fmt.Append(nil, p), Value: fmt.Append(nil, i),
					}, func(_ *kgo.Record, err error) {
						if err != nil {
							t.Errorf("producing: %v", err)
						}
						sent.Done()
					})
				}
				sent.Wait()
			})
		}
		all.Wait()
		next := map[string]int{}
		for _, r := range consume(t, b.client(kgo.ConsumeTopics("t")), producers*each) {
			key := fmt.Sprintf("%s/%d", r.Key, r.Partition)
			if next[key] == 0 {
				next[key] = int(r.Partition)
			}
			if got := string(r.Value); got != fmt.Sprint(next[key]) {
				t.Fatalf("producer/partition %s: got %s, want %d", key, got, next[key])
			}
			next[key] += partitions
		}
	})
}

func TestIdempotentProducerGoesOnThroughRestarts(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		const rounds, each = 5, 400
		c := b.client(kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(2<<10),
			kgo.StopProducerOnDataLossDetected())
		for round := range rounds {
			var sent sync.WaitGroup
			for i := range each {
				sent.Add(1)
				c.Produce(t.Context(), &kgo.Record{Value: fmt.Append(nil, round*each+i)}, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Errorf("producing: %v", err)
					}
					sent.Done()
				})
			}
			b.restart() // with requests on their way
			sent.Wait()
		}
		for i, r := range consume(t, b.client(kgo.ConsumeTopics("t")), rounds*each) {
			if string(r.Value) != fmt.Sprint(i) || r.Offset != int64(i) {
				t.Fatalf("offset %d holds %s, want %d: lost, doubled or out of order", r.Offset, r.Value, i)
			}
		}
	})
}

// Compression must not be undone, nor redone, on the way.
func TestCompressedBatchesAreStoredAsTheyCame(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		value := bytes.Repeat([]byte("all work and no play "), 500)
		for name, codec := range map[string]kgo.CompressionCodec{
			"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
			"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		} {
			produce(t, b.client(kgo.DefaultProduceTopic(name), kgo.ProducerBatchCompression(codec)), &kgo.Record{Value: value})
			got := consume(t, b.client(kgo.ConsumeTopics(name)), 1)[0]
			if !bytes.Equal(got.Value, value) {
				t.Errorf("%s: value differs", name)
			}
			stored := rawBatches(t, b, name, 0)
			if kind := map[string]byte{"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}[name]; stored[22]&7 != kind {
				t.Errorf("%s: stored with compression %d, want %d", name, stored[22]&7, kind)
			}
			if name != "none" && len(stored) > len(value)/2 {
				t.Errorf("%s: %d bytes stored for a value of %d", name, len(stored), len(value))
			}
		}
	})
}

// A batch above the topic's limit is refused as a whole.
func TestTooLargeABatchIsRefusedAndNothingOfItStored(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, map[string]string{"max.message.bytes": "1000"})
		c := b.client(kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
		noise := make([]byte, 2000)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		err := c.ProduceSync(t.Context(), &kgo.Record{Value: noise}).FirstErr()
		if !errors.Is(err, kerr.MessageTooLarge) {
			t.Fatalf("got %v, want MESSAGE_TOO_LARGE", err)
		}
		if r := produce(t, c, &kgo.Record{Value: []byte("small")})[0]; r.Offset != 0 {
			t.Errorf("the next record got offset %d, want 0", r.Offset)
		}
	})
}

func TestAppendTimeTopicStampsItsBatches(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
		old := kgo.Record{Value: []byte("v"), Timestamp: epoch(1000)}
		c := b.client(kgo.DefaultProduceTopic("t"))
		produce(t, c, &old)
		got := consume(t, b.client(kgo.ConsumeTopics("t")), 1)[0]
		if got.Timestamp.Year() < 2020 || got.Attrs.TimestampType() != 1 {
			t.Errorf("record has time %v of type %d, want now and type 1", got.Timestamp, got.Attrs.TimestampType())
		}
	})
}

func TestRecordFarInTheFutureIsRefusedWhereTheTopicSaysSo(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, map[string]string{"message.timestamp.after.max.ms": "60000"})
		c := b.client(kgo.DefaultProduceTopic("t"))
		err := c.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v"), Timestamp: epoch(time.Now().Add(time.Hour).UnixMilli())}).FirstErr()
		if !errors.Is(err, kerr.InvalidTimestamp) {
			t.Fatalf("got %v, want INVALID_TIMESTAMP", err)
		}
	})
}
