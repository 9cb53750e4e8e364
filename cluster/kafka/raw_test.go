package kafka_test

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch is a record batch that a test makes by hand.
type batch struct {
	attributes int16
	producer   int64
	epoch      int16
	sequence   int32
	values     []string
	timestamp  int64
}

// encode returns the batch's bytes, with a right checksum.
func (b batch) encode() []byte {
	rb := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes,
		LastOffsetDelta: int32(len(b.values) - 1), FirstTimestamp: b.timestamp, MaxTimestamp: b.timestamp,
		ProducerID: b.producer, ProducerEpoch: b.epoch, FirstSequence: b.sequence, NumRecords: int32(len(b.values)),
	}
	for i, v := range b.values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: []byte(v)}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		rb.Records = r.AppendTo(rb.Records)
	}
	rb.Length = int32(49 + len(rb.Records))
	raw := rb.AppendTo(nil)
	seal(raw)
	return raw
}

// seal computes the checksum anew.
func seal(raw []byte) {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
}

func plainBatch(values ...string) []byte {
	return batch{producer: -1, epoch: -1, sequence: -1, values: values}.encode()
}

func txnBatch(producer int64, epoch int16, sequence int32, values ...string) []byte {
	return batch{attributes: 16, producer: producer, epoch: epoch, sequence: sequence, values: values}.encode()
}

// produceRaw sends bytes as a batch and returns the error code.
func produceRaw(t *testing.T, b *broker, topic string, txn *string, raw []byte) int16 {
	t.Helper()
	code, _ := produceRawAt(t, b, topic, txn, raw)
	return code
}

func produceRawAt(t *testing.T, b *broker, topic string, txn *string, raw []byte) (code int16, offset int64) {
	t.Helper()
	return produceRawWith(t, b, b.client(), topic, txn, raw)
}

// topicID returns the id of a topic, zero if there is none.
func (b *broker) topicID(name string) [16]byte {
	stream, ok := b.node.Meta().Stream(name)
	if !ok {
		return [16]byte{}
	}
	return stream.ID
}

func produceRawWith(t *testing.T, b *broker, c *kgo.Client, topic string, txn *string, raw []byte) (code int16, offset int64) {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = txn, -1, cmp.Or(b.timeoutMillis, 30_000)
	topicReq := kmsg.NewProduceRequestTopic()
	topicReq.Topic, topicReq.TopicID = topic, b.topicID(topic)
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = raw
	topicReq.Partitions = append(topicReq.Partitions, p)
	req.Topics = append(req.Topics, topicReq)
	resp, err := req.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatalf("producing: %v", err)
	}
	answer := resp.Topics[0].Partitions[0]
	return answer.ErrorCode, answer.BaseOffset
}
