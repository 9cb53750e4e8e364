package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// mostBuffered bounds the records that an application's client holds.
const mostBuffered = 50_000

// appProducer is one client that produces as an application does.
type appProducer struct {
	run    *run
	client *kgo.Client
	first  int // of the corpus
	acked  []atomic.Int64
	failed atomic.Pointer[error]
}

func newAppProducer(r *run, i int) (*appProducer, error) {
	codec, err := newCodec(r.o.Compression)
	if err != nil {
		return nil, err
	}
	o := []kgo.Opt{
		kgo.SeedBrokers(r.o.Brokers...), kgo.ClientID(clientID), kgo.DefaultProduceTopic(r.o.Stream),
		kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(int32(max(r.o.BatchBytes, r.o.Size+200))),
		kgo.ProducerLinger(max(r.o.Linger, 0)), kgo.MaxBufferedRecords(mostBuffered),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(r.o.BatchBytes, false, false, nil)),
	}
	switch r.o.Acks {
	case "1":
		o = append(o, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		o = append(o, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(o...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return &appProducer{run: r, client: client, first: i * len(r.corpus) / r.o.Clients, acked: make([]atomic.Int64, len(r.corpus))}, nil
}

// produce sends at the run's rate, or as fast as the client takes records, and waits until all are answered.
func (p *appProducer) produce(ctx context.Context) error {
	r := p.run
	send := func(turn int64, at time.Time) error {
		n := (int64(p.first) + turn) % int64(len(r.corpus))
		record := &kgo.Record{Value: r.corpus[n]}
		if r.o.Mode == Both { // when it was due, for who reads it
			record.Key = binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))
		}
		p.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				p.failed.CompareAndSwap(nil, &err)
				return
			}
			p.acked[n].Add(1)
			r.produced.Add(1)
			if r.o.Rate > 0 {
				r.produceLatency.Add(time.Since(at), 1)
			}
		})
		return p.err()
	}
	var err error
	if r.o.Rate > 0 {
		turns := int64(-1)
		if r.o.Records > 0 {
			turns = (r.o.Records + int64(r.o.Clients) - 1) / int64(r.o.Clients)
		}
		err = Pace(ctx, turns, time.Duration(float64(time.Second)*float64(r.o.Clients)/r.o.Rate), r.end, send)
	} else {
		for turn := int64(0); err == nil && r.claim(ctx, 1); turn++ {
			var at time.Time
			if r.o.Mode == Both {
				at = time.Now()
			}
			err = send(turn, at)
		}
	}
	if err == nil {
		err = p.client.Flush(ctx)
	}
	if failed := p.err(); failed != nil {
		return failed
	}
	return err
}

func (p *appProducer) err() error {
	if err := p.failed.Load(); err != nil {
		return fmt.Errorf("producing: %w", *err)
	}
	return nil
}

// newReader returns a client that reads the share's partitions from the given places on.
func newReader(r *run, partitions []int32, from offsets) (*kgo.Client, error) {
	places := map[int32]kgo.Offset{}
	for _, p := range partitions {
		places[p] = kgo.NewOffset().At(from[p])
	}
	return kgo.NewClient(kgo.SeedBrokers(r.o.Brokers...), kgo.ClientID(clientID),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.o.Stream: places}),
		kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(4<<20), kgo.FetchMaxWait(100*time.Millisecond))
}

// appConsumer is one client that reads as an application does.
type appConsumer struct {
	run   *run
	share share
	at    offsets
	// each gets every record; nil: it is only counted. It is called from one goroutine at a time.
	each func(*kgo.Record) error
}

// consume reads until the run says that all is read.
func (k *appConsumer) consume(ctx context.Context) error {
	client, err := newReader(k.run, k.share.partitions, k.at)
	if err != nil {
		return err
	}
	defer client.Close()
	for !k.run.readAll(k.at, k.share.partitions) {
		poll, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // the run's end may be known meanwhile
		fetches := client.PollFetches(poll)
		idle := poll.Err() != nil
		cancel()
		switch err := fetches.Err0(); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !idle:
			return fmt.Errorf("reading: %w", err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			if err := k.take(it.Next()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *appConsumer) take(rec *kgo.Record) error {
	if rec.Offset != k.at[rec.Partition] {
		return fmt.Errorf("partition %d goes on at offset %d, want %d", rec.Partition, rec.Offset, k.at[rec.Partition])
	}
	k.at[rec.Partition]++
	k.run.consumed.Add(1)
	k.run.consumedBytes.Add(int64(len(rec.Value)))
	if k.run.o.Mode == Both && len(rec.Key) == 8 {
		k.run.readLatency.Add(time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(rec.Key)))), 1)
	}
	if k.each != nil {
		return k.each(rec)
	}
	return nil
}
