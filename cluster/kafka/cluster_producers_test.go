package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What the next leader knows of a producer is exactly what the one before knew: repeated batches get the offsets that
// they have, what leaves a gap is refused, the next one goes on, and who was fenced stays so.
func TestProducerStateSurvivesLeaderChanges(t *testing.T) {
	ps := newPeers(t, 3)
	ps.topic("t", 1)
	id := func() int64 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := req.RequestWith(t.Context(), ps.client())
		if err != nil || resp.ErrorCode != 0 {
			t.Fatal(err, kerr.ErrorForCode(resp.ErrorCode))
		}
		return resp.ProducerID
	}()
	next := int32(0) // of the sequence, and the offset, as nobody else writes
	for round := range 4 {
		lead := ps.leader("t", 0)
		send := func(epoch int16, sequence int32) (code int16, offset int64) {
			t.Helper()
			return ps.produceRaw(lead, batch{producer: id, epoch: epoch, sequence: sequence, values: []string{"a", "b"}}.encode())
		}
		for back := int32(5); back > 0 && next > 0; back-- { // the last five, as stored under the leader before
			if code, offset := send(1, next-2*back); code != 0 || offset != int64(next-2*back) {
				t.Errorf("round %d, sequence %d again: %v at %d", round, next-2*back, kerr.ErrorForCode(code), offset)
			}
		}
		if next > 0 { // a producer that nobody knows may begin anywhere
			if code, _ := send(1, next+2); code != kerr.OutOfOrderSequenceNumber.Code {
				t.Errorf("round %d, a gap: %v, want OUT_OF_ORDER_SEQUENCE_NUMBER", round, kerr.ErrorForCode(code))
			}
		}
		for range 7 {
			if code, offset := send(1, next); code != 0 || offset != int64(next) {
				t.Fatalf("round %d, sequence %d: %v at %d", round, next, kerr.ErrorForCode(code), offset)
			}
			next += 2
		}
		if code, _ := send(0, next); code != kerr.InvalidProducerEpoch.Code {
			t.Errorf("round %d, an older epoch: %v, want INVALID_PRODUCER_EPOCH", round, kerr.ErrorForCode(code))
		}
		ps.down(lead)
		ps.up(lead)
	}
	got := consume(t, ps.client(kgo.ConsumeTopics("t")), int(next))
	if last := got[len(got)-1].Offset; last != int64(next-1) {
		t.Errorf("the last record is at %d, want %d", last, next-1)
	}
}

// produceRaw sends a batch to the node at a place, as it is.
func (ps *peers) produceRaw(place int, raw []byte) (code int16, offset int64) {
	ps.t.Helper()
	part, err := ps.Node(place).Partition("t", 0)
	if err != nil {
		ps.t.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.TopicID = part.Key().Stream
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = raw
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	resp := requestAt(ps.t, ps.client().Broker(int(ps.Node(place).ID())), req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	return resp.ErrorCode, resp.BaseOffset
}

// up starts a node that is down, with its face.
func (ps *peers) up(i int) {
	ps.t.Helper()
	ps.Restart(i)
	ps.serve(i)
}
