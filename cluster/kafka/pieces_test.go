package kafka_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Answers are the journal's own pages. If the file loses them a client gets an error, and the server lives.
func TestAFileThatWasCutShortIsAnErrorToItsConsumers(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		c := b.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		for range 8 {
			produce(t, c, &kgo.Record{Topic: "t", Value: bytes.Repeat([]byte("x"), 500_000)})
		}
		segments, err := filepath.Glob(filepath.Join(b.nopts.Dir, "streams", "*", "0", "*.seg"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments %v: %v", segments, err)
		}
		if err := os.Truncate(segments[0], 1_200_000); err != nil {
			t.Fatal(err)
		}
		at := func(offset int64) kmsg.FetchResponseTopicPartition {
			return fetchRaw(t, b, "t", func(_ *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = offset })
		}
		if p := at(0); p.ErrorCode != 0 || len(p.RecordBatches) < 500_000 {
			t.Errorf("what is still there: %d bytes, %v", len(p.RecordBatches), kerr.ErrorForCode(p.ErrorCode))
		}
		if p := at(5); p.ErrorCode != kerr.KafkaStorageError.Code {
			t.Errorf("what is gone: %d bytes, %v; want KAFKA_STORAGE_ERROR", len(p.RecordBatches), kerr.ErrorForCode(p.ErrorCode))
		}
	})
}
