package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitionBytes is the most that is asked for of a partition at a time, as by Kafka's consumers.
const partitionBytes = 1 << 20

// rawConsumer is one connection that reads batches without unpacking them.
type rawConsumer struct {
	run   *run
	share share
	at    offsets
}

// consume reads until the run says that all is read.
func (k *rawConsumer) consume(ctx context.Context) error {
	c, err := dialRaw(ctx, k.share.addr, 64<<10)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var frame []byte
	for n := int32(0); !k.run.readAll(k.at, k.share.partitions); n++ {
		frame = frameOf(frame[:0], k.request())
		if err := c.send(frame, n); err != nil {
			return ended(ctx, err)
		}
		body, _, err := c.receive()
		if err != nil {
			return ended(ctx, err)
		}
		if err := k.count(body); err != nil {
			return err
		}
	}
	return nil
}

// ended makes the error of a connection that was closed because the run is over nil.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, net.ErrClosed) || errors.Is(context.Cause(ctx), errOver)) {
		return context.Cause(ctx)
	}
	return fmt.Errorf("waiting for an answer to Fetch: %w", err)
}

// request asks for what clients ask for by default of each partition, so that the partitions go on side by side: who is
// given much of one reads past what lies between, and reads the disk again for the others.
func (k *rawConsumer) request() kmsg.Request {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.MaxWaitMillis, q.MinBytes, q.MaxBytes = fetchVersion, 100, 1, 16<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = k.run.o.Stream
	for _, p := range k.share.partitions {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = p, k.at[p], partitionBytes
		topic.Partitions = append(topic.Partitions, part)
	}
	q.Topics = []kmsg.FetchRequestTopic{topic}
	return q
}

// count reads an answer to Fetch.
func (k *rawConsumer) count(body []byte) error {
	r := reader{b: body}
	r.int32() // throttled
	for range max(r.int32(), 0) {
		r.take(int(r.int16()))
		for range max(r.int32(), 0) {
			partition, code := r.int32(), r.int16()
			r.take(16) // high watermark, last stable offset
			r.take(16 * int(max(r.int32(), 0)))
			records := r.take(int(max(r.int32(), 0)))
			switch {
			case r.bad:
				return errAnswer
			case code != 0:
				return fmt.Errorf("fetching partition %d: %w", partition, kerr.ErrorForCode(code))
			}
			if err := k.batches(partition, records); err != nil {
				return err
			}
		}
	}
	return r.err()
}

// batches counts the records of a partition's batches and compares their checksums.
func (k *rawConsumer) batches(partition int32, b []byte) error {
	be := binary.BigEndian
	var records, read int64
	for len(b) >= batchHeaderBytes {
		size := int64(be.Uint32(b[atLength:])) + 12
		if size > int64(len(b)) {
			break // the rest comes with the next answer
		}
		base, last := int64(be.Uint64(b)), int64(be.Uint32(b[23:]))
		if crc32.Checksum(b[atAttributes:size], castagnoli) != be.Uint32(b[atCRC:]) {
			return fmt.Errorf("the batch at offset %d of partition %d is damaged", base, partition)
		}
		if base > k.at[partition] {
			return fmt.Errorf("partition %d goes on at offset %d, want %d", partition, base, k.at[partition])
		}
		next := base + last + 1
		records += next - k.at[partition]
		k.at[partition] = next
		read += size
		b = b[size:]
	}
	k.run.consumed.Add(records)
	k.run.consumedBytes.Add(read)
	return nil
}
