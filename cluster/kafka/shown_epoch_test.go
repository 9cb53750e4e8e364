package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// S29, of clients that keep epochs by name (librdkafka): a topic that was made again begins above all that clients know of the
// one before, and both what the metadata says and what is in a record is understood.
func TestAStreamMadeAgainDoesNotBeginWithAnEpochThatClientsIgnore(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("t", 3)...)
		record := consume(t, b.client(kgo.ConsumeTopics("t")), 3)[0]
		listed, err := b.admin().Metadata(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		stream, _ := b.node.Meta().Stream("t")
		shown := listed.Topics["t"].Partitions[0].LeaderEpoch
		if seconds := int32(stream.CreatedMillis/1000 - 1_735_689_600); shown != seconds+record.LeaderEpoch {
			t.Fatalf("epoch %d of a stream made in second %d, whose records have %d", shown, seconds, record.LeaderEpoch)
		}
		for _, epoch := range []int32{shown, record.LeaderEpoch} {
			if e, end := endOfEpoch(t, b, epoch); e != record.LeaderEpoch || end != 3 {
				t.Errorf("epoch %d ends at %d as %d, want 3 as %d", epoch, end, e, record.LeaderEpoch)
			}
			for known, want := range map[int32]int16{epoch: 0, epoch - 1: kerr.FencedLeaderEpoch.Code, epoch + 1: kerr.UnknownLeaderEpoch.Code} {
				p := fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) {
					p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.FetchOffset = known, epoch, 1
				})
				if p.ErrorCode != want || p.DivergingEpoch.Epoch >= 0 {
					t.Errorf("a fetch of who knows epoch %d: %v, diverging %+v", known, kerr.ErrorForCode(p.ErrorCode), p.DivergingEpoch)
				}
			}
		}
	})
}
