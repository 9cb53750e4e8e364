package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// changeRecord returns about a kibibyte of JSON like a change of a row, of which
// LZ4 makes about a quarter.
func changeRecord(r *rand.Rand) []byte {
	row := func() string {
		return fmt.Sprintf(`{"id":%d,"customer_id":%d,"status":"%s","total":"%d.%02d","currency":"EUR","note":"%x","created_at":"2026-11-29T12:%02d:%02d.%06dZ","updated_at":"2026-11-29T13:%02d:%02d.%06dZ"}`,
			r.Uint32(), r.Uint32N(100000), []string{"new", "paid", "sent", "closed"}[r.IntN(4)], r.Uint32N(1000), r.Uint32N(100),
			r.Uint64(), r.IntN(60), r.IntN(60), r.IntN(1000000), r.IntN(60), r.IntN(60), r.IntN(1000000))
	}
	v := fmt.Sprintf(`{"before":%s,"after":%s,"source":{"version":"1","connector":"mysql","name":"shop","ts_ms":%d,"snapshot":"false","db":"shop","table":"orders","server_id":1,"gtid":"8f3b2c9e-3d5f-11ee-be56-0242ac120002:%d","file":"binlog.000042","pos":%d,"row":%d},"op":"u","ts_ms":%d}`,
		row(), row(), 1790000000000+r.Uint64N(1e9), r.Uint32(), r.Uint32(), r.IntN(10), 1790000000000+r.Uint64N(1e9))
	for len(v) < 1024 {
		v += " "
	}
	return []byte(v[:1024])
}

func benchBroker(b *testing.B) (*kafka.Server, string) {
	node, err := cluster.Open(cluster.Options{Dir: b.TempDir(), Partitions: 8})
	if err != nil {
		b.Fatal(err)
	}
	server, err := kafka.New(kafka.Options{Node: node, AutoPartitions: 8})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ctx, l, kafka.Access{}) })
	b.Cleanup(func() {
		cancel()
		_ = server.Close()
		serving.Wait()
		_ = node.Close()
	})
	return server, l.Addr().String()
}

func benchOpts(server *kafka.Server, addr string, pipe bool) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("bench"), kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerBatchMaxBytes(1 << 20),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.RecordPartitioner(kgo.StickyPartitioner()),
	}
	if pipe {
		opts = append(opts, kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return server.Dial(ctx) }))
	}
	return opts
}

// BenchmarkProduce sends 1-KiB records with LZ4 into a durable stream; client and
// server share the machine.
func BenchmarkProduce(b *testing.B) {
	for _, way := range []string{"tcp", "pipe"} {
		b.Run(way, func(b *testing.B) {
			server, addr := benchBroker(b)
			c, err := kgo.NewClient(benchOpts(server, addr, way == "pipe")...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			r := rand.New(rand.NewPCG(1, 2))
			values := make([][]byte, 4096)
			for i := range values {
				values[i] = changeRecord(r)
			}
			var failed atomic.Int64
			done := func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Add(1)
				}
			}
			b.SetBytes(1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Produce(context.Background(), &kgo.Record{Value: values[i%len(values)]}, done)
			}
			if err := c.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if n := failed.Load(); n > 0 {
				b.Fatalf("%d records failed", n)
			}
		})
	}
}

// BenchmarkConsume reads what BenchmarkProduce writes.
func BenchmarkConsume(b *testing.B) {
	for _, way := range []string{"tcp", "pipe"} {
		b.Run(way, func(b *testing.B) {
			const records = 500_000
			server, addr := benchBroker(b)
			opts := benchOpts(server, addr, way == "pipe")
			p, err := kgo.NewClient(opts...)
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			values := make([][]byte, 4096)
			for i := range values {
				values[i] = changeRecord(r)
			}
			for i := range records {
				p.Produce(context.Background(), &kgo.Record{Value: values[i%len(values)]}, nil)
			}
			if err := p.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			p.Close()
			b.SetBytes(records * 1024)
			for b.Loop() {
				c, err := kgo.NewClient(append(opts, kgo.ConsumeTopics("bench"), kgo.FetchMaxBytes(16<<20))...)
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; n < records; {
					fetches := c.PollFetches(context.Background())
					if err := fetches.Err(); err != nil {
						b.Fatal(err)
					}
					n += fetches.NumRecords()
				}
				c.Close()
			}
			b.ReportMetric(float64(records*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
