package kafka_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// timedBatch makes a batch of records with these times, whose header says that max is the latest of them.
func timedBatch(codec int16, latest int64, times ...int64) []byte {
	rb := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: codec, LastOffsetDelta: int32(len(times) - 1), FirstTimestamp: times[0],
		MaxTimestamp: latest, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(times)),
	}
	for i, ms := range times {
		r := kmsg.Record{OffsetDelta: int32(i), TimestampDelta64: ms - times[0], Value: []byte("v")}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		rb.Records = r.AppendTo(rb.Records)
	}
	if codec == 1 {
		rb.Records = gzipped(rb.Records)
	}
	rb.Length = int32(49 + len(rb.Records))
	raw := rb.AppendTo(nil)
	seal(raw)
	return raw
}

func gzipped(plain []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(plain)
	_ = w.Close()
	return packed.Bytes()
}

// repacked is the batch with these bytes in place of its records.
func repacked(raw []byte, codec byte, packed []byte) []byte {
	raw = append(bytes.Clone(raw[:61]), packed...)
	raw[22] = codec
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	seal(raw)
	return raw
}

// IBM/sarama below 1.45.1 leaves the latest time out (sarama#3108, redpanda#25200); other clients say that of the last record
// (kafkajs). Kafka writes it itself.
func TestRecordsAreFoundByTimeWhateverTheHeaderSays(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		for name, raw := range map[string][]byte{
			"not set":                timedBatch(0, -1, 5000, 9000, 1000),
			"that of the last":       timedBatch(0, 1000, 5000, 9000, 1000),
			"later than all":         timedBatch(0, 99_000, 5000, 9000, 1000),
			"not set, compressed":    timedBatch(1, -1, 5000, 9000, 1000),
			"the broker's":           timedBatch(8, 77, 5000, 9000, 1000),
			"that of the last, gzip": timedBatch(1, 1000, 5000, 9000, 1000),
			"of none of them, gzip":  timedBatch(1, 6000, 5000, 9000, 1000),
		} {
			code, base := produceRawAt(t, b, "t", nil, raw)
			if code != 0 {
				t.Errorf("%s: refused with %v", name, kerr.ErrorForCode(code))
				continue
			}
			listed, err := b.admin().ListMaxTimestampOffsets(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := listed.Lookup("t", 0); got.Offset != base+1 || got.Timestamp != 9000 {
				t.Errorf("%s: the latest time is %d at offset %d, want 9000 at %d", name, got.Timestamp, got.Offset, base+1)
			}
			listed, err = b.admin().ListOffsetsAfterMilli(t.Context(), 9000, "t")
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := listed.Lookup("t", 0); got.Offset != base+1 {
				t.Errorf("%s: time 9000 is at offset %d, want %d", name, got.Offset, base+1)
			}
			if _, err := b.admin().DeleteRecords(t.Context(), offsetsOf("t", 0, base+3)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Apache Kafka reads the records of every batch; consumers end at one whose records are not what its header says.
func TestRecordsThatAreNotThoseOfTheHeaderAreRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		for name, change := range map[string]func(raw []byte){
			"more than the header says": func(raw []byte) { raw[26], raw[60] = 0, 1 },
			"fewer":                     func(raw []byte) { raw[26], raw[60] = 2, 3 },
			"an offset twice":           func(raw []byte) { raw[len(raw)-5] = 0 },
			"a value beyond its record": func(raw []byte) { raw[len(raw)-3] = 0x7e },
		} {
			raw := timedBatch(0, 5000, 5000, 5000)
			change(raw)
			seal(raw)
			if code := produceRaw(t, b, "t", nil, raw); code != kerr.InvalidRecord.Code {
				t.Errorf("%s: %v, want %s", name, kerr.ErrorForCode(code), kerr.InvalidRecord.Message)
			}
		}
		plain := timedBatch(0, 6000, 5000, 6000)
		for name, raw := range map[string][]byte{
			"gzip of garbage":           repacked(plain, 1, gzipped([]byte("no record of any kind"))),
			"gzip of more records":      repacked(plain, 1, gzipped(append(bytes.Clone(plain[61:]), plain[61:]...))),
			"gzip of fewer":             repacked(timedBatch(0, 7000, 5000, 6000, 7000), 1, gzipped(plain[61:])),
			"no gzip":                   repacked(plain, 1, []byte("garbage")),
			"no snappy":                 repacked(plain, 2, []byte("garbage")),
			"no lz4":                    repacked(plain, 3, []byte("garbage")),
			"no zstd":                   repacked(plain, 4, []byte("garbage")),
			"nothing that could be lz4": repacked(plain, 3, nil),
		} {
			if code := produceRaw(t, b, "t", nil, raw); code != kerr.InvalidRecord.Code {
				t.Errorf("%s: %v, want %s", name, kerr.ErrorForCode(code), kerr.InvalidRecord.Message)
			}
		}
		raw := timedBatch(0, -1, 5000, 6000)
		raw[len(raw)-2] ^= 1 // and a checksum that says so
		if code := produceRaw(t, b, "t", nil, raw); code != kerr.CorruptMessage.Code {
			t.Errorf("damaged: %v, want %s", kerr.ErrorForCode(code), kerr.CorruptMessage.Message)
		}
		if code, offset := produceRawAt(t, b, "t", nil, plainBatch("good")); code != 0 || offset != 0 {
			t.Errorf("the first good batch: %v at offset %d, want 0", kerr.ErrorForCode(code), offset)
		}
	})
}

// A record in the middle of a batch is held to the stream's bounds like the first one and the latest.
func TestEveryTimeOfABatchIsWithinBounds(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		hour := "3600000"
		b.topic("t", 1, map[string]string{"message.timestamp.before.max.ms": hour, "message.timestamp.after.max.ms": hour})
		now := time.Now().UnixMilli()
		for name, c := range map[string]struct {
			between int64
			want    int16
		}{
			"too old":   {now - 7_200_000, kerr.InvalidTimestamp.Code},
			"too late":  {now + 7_200_000, kerr.InvalidTimestamp.Code},
			"in bounds": {now - 60_000, 0},
		} {
			for _, codec := range []int16{0, 1} {
				if code := produceRaw(t, b, "t", nil, timedBatch(codec, now, now, c.between, now)); code != c.want {
					t.Errorf("%s, codec %d: %v, want %v", name, codec, kerr.ErrorForCode(code), kerr.ErrorForCode(c.want))
				}
			}
		}
	})
}
