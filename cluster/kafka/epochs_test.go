package kafka_test

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// endOfEpoch asks where an epoch's records end.
func endOfEpoch(t *testing.T, b *broker, epoch int32) (int32, int64) {
	t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LeaderEpoch = -1, epoch
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), b.client())
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(err, resp)
	}
	return resp.Topics[0].Partitions[0].LeaderEpoch, resp.Topics[0].Partitions[0].EndOffset
}

// Clients compare what they have read with where its epoch ends, and take a
// difference for data loss.
func TestEpochsRiseAndEndWhereTheNextBegins(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		epochs := map[int32]int64{} // epoch -> end
		last := int32(-1)
		for round := range 3 {
			produce(t, b.client(), numbered("t", 5)...)
			c := b.client(kgo.ConsumeTopics("t"))
			got := consume(t, c, 5*(round+1))
			c.Close()
			epoch := got[len(got)-1].LeaderEpoch
			if epoch <= last {
				t.Fatalf("epoch %d follows %d", epoch, last)
			}
			last = epoch
			epochs[epoch] = int64(5 * (round + 1))
			b.restart()
		}
		produce(t, b.client(), numbered("t", 1)...)
		for epoch, want := range epochs {
			if got, end := endOfEpoch(t, b, epoch); got != epoch || end != want {
				t.Errorf("epoch %d ends as %d at %d, want %d", epoch, got, end, want)
			}
		}
		p := fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = last })
		if p.ErrorCode != kerr.FencedLeaderEpoch.Code {
			t.Errorf("a fetch with an old epoch: %v, want FENCED_LEADER_EPOCH", kerr.ErrorForCode(p.ErrorCode))
		}
		p = fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 1000 })
		if p.ErrorCode != kerr.UnknownLeaderEpoch.Code {
			t.Errorf("a fetch with a later epoch: %v, want UNKNOWN_LEADER_EPOCH", kerr.ErrorForCode(p.ErrorCode))
		}
		p = fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
			p.FetchOffset, p.LastFetchedEpoch = 12, last
		})
		if p.ErrorCode != 0 || p.DivergingEpoch.Epoch >= 0 || len(p.RecordBatches) == 0 {
			t.Errorf("a fetch of what agrees: %v, diverging %+v", kerr.ErrorForCode(p.ErrorCode), p.DivergingEpoch)
		}
		first := last
		for epoch := range epochs {
			first = min(first, epoch)
		}
		p = fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
			p.FetchOffset, p.LastFetchedEpoch = 12, first
		})
		if p.DivergingEpoch.Epoch != first || p.DivergingEpoch.EndOffset != epochs[first] {
			t.Errorf("a fetch of what differs: diverging %+v, want epoch %d ending at %d", p.DivergingEpoch, first, epochs[first])
		}
	})
}

// More bytes on their way than the server may hold make connections wait, never
// fail.
func TestRequestsWaitForMemory(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.kopts.MaxRequestBytes, b.kopts.MaxMemory = 2<<20, 2<<20
		b.restart()
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				c := b.client(kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.BrokerMaxWriteBytes(2<<20))
				for range 5 {
					if err := c.ProduceSync(t.Context(), &kgo.Record{Value: make([]byte, 900<<10)}).FirstErr(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		ends, err := b.admin().ListEndOffsets(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := ends.Lookup("t", 0); o.Offset != 60 {
			t.Errorf("%d records are stored, want 60", o.Offset)
		}
	})
}
