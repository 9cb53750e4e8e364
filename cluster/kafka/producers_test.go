package kafka_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerID asks for an idempotent producer's id.
func producerID(t *testing.T, b *broker) (id int64, epoch int16) {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(t.Context(), b.client())
	if err != nil || resp.ErrorCode != 0 {
		t.Fatal(err, kerr.ErrorForCode(resp.ErrorCode))
	}
	return resp.ProducerID, resp.ProducerEpoch
}

// What was stored is answered with the offset it has, also after a
// restart; what leaves a gap is refused.
func TestDuplicatesGetTheirOriginalOffset(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		id, epoch := producerID(t, b)
		send := func(sequence int32) (int16, int64) {
			return produceRawAt(t, b, "t", nil, batch{producer: id, epoch: epoch, sequence: sequence, values: []string{"a", "b"}}.encode())
		}
		for i := range int32(7) {
			if code, offset := send(2 * i); code != 0 || offset != int64(2*i) {
				t.Fatalf("sequence %d: %v at %d", 2*i, kerr.ErrorForCode(code), offset)
			}
		}
		for round := range 2 {
			for i := int32(2); i < 7; i++ { // the last five
				if code, offset := send(2 * i); code != 0 || offset != int64(2*i) {
					t.Errorf("round %d, sequence %d again: %v at %d, want %d", round, 2*i, kerr.ErrorForCode(code), offset, 2*i)
				}
			}
			if code, _ := send(99); code != kerr.OutOfOrderSequenceNumber.Code {
				t.Errorf("round %d, a gap: %v, want OUT_OF_ORDER_SEQUENCE_NUMBER", round, kerr.ErrorForCode(code))
			}
			b.restart()
		}
		got := consume(t, b.client(kgo.ConsumeTopics("t")), 14)
		if last := got[13].Offset; last != 13 {
			t.Errorf("the last record is at %d, want 13", last)
		}
	})
}

// Sequence numbers go on at 0 after 2^31-1.
func TestSequenceNumbersWrap(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		id, epoch := producerID(t, b)
		for i, sequence := range []int32{math.MaxInt32 - 1, 1, 4} { // three records each: MaxInt32-1, MaxInt32, 0
			code, offset := produceRawAt(t, b, "t", nil, batch{producer: id, epoch: epoch, sequence: sequence, values: []string{"a", "b", "c"}}.encode())
			if code != 0 || offset != int64(3*i) {
				t.Fatalf("sequence %d: %v at %d, want offset %d", sequence, kerr.ErrorForCode(code), offset, 3*i)
			}
		}
	})
}

func TestOlderEpochOfAProducerIsRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		id, _ := producerID(t, b)
		for i, c := range []struct {
			epoch    int16
			sequence int32
			want     int16
		}{
			{0, 0, 0}, {2, 0, 0}, {1, 0, kerr.InvalidProducerEpoch.Code},
			{3, 5, kerr.OutOfOrderSequenceNumber.Code}, {2, 1, 0},
		} {
			code := produceRaw(t, b, "t", nil, batch{producer: id, epoch: c.epoch, sequence: c.sequence, values: []string{fmt.Sprint(i)}}.encode())
			if code != c.want {
				t.Errorf("step %d: %v, want %v", i, kerr.ErrorForCode(code), kerr.ErrorForCode(c.want))
			}
		}
	})
}

// acks decides whether there is an answer, never how safe the record is.
func TestAcksZeroIsStoredWithoutAnAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		c := b.client(kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic("t"))
		produce(t, c, numbered("t", 20)...)
		consume(t, b.client(kgo.ConsumeTopics("t")), 20)
		leader := b.client(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic("t"))
		if r := produce(t, leader, numbered("t", 1)...); r[0].Offset != 20 {
			t.Errorf("acks=1 got offset %d, want 20", r[0].Offset)
		}
	})
}

func TestServerCountsWhatItTakesAndRefuses(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		for range 3 {
			produceRaw(t, b, "t", nil, plainBatch("a", "b"))
		}
		produceRaw(t, b, "t", nil, []byte("no batch"))
		s := b.server.Load().Stats()
		if s.RecordsIn != 6 || s.BatchesTaken != 3 || s.BatchesRefused != 1 {
			t.Errorf("counted %d records in %d batches, %d refused; want 6 in 3, 1", s.RecordsIn, s.BatchesTaken, s.BatchesRefused)
		}
		if s.Connections == 0 || s.Requests < 4 || s.BytesIn == 0 || s.BytesOut == 0 {
			t.Errorf("connections and requests are %+v", s)
		}
	})
}
