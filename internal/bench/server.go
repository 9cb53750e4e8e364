package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

const (
	benchStream     = "bench"
	benchPartitions = 8
)

// serverRun appends through the Kafka protocol to a fresh `daybook server` and reads it
// all back.
func serverRun(ctx context.Context, o options) ([]result, error) {
	dir, err := os.MkdirTemp("", "daybook-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.binary, "server", "--data", dir, "--kafka", addr, "--http", "", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	if err := awaitListening(ctx, addr); err != nil {
		return nil, err
	}
	if err := createStream(ctx, addr); err != nil {
		return nil, err
	}
	appended, err := appendRun(ctx, o, addr, cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	fetched, err := fetchRun(ctx, o, addr, cmd.Process.Pid)
	return []result{appended, fetched}, err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitListening returns once the server accepts connections.
func awaitListening(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func createStream(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := kadm.NewClient(client).CreateTopic(ctx, benchPartitions, 1, nil, benchStream)
	return errors.Join(err, r.Err)
}

// producers is how many clients append side by side: one client compresses for a broker in
// one goroutine, and would be all that is measured.
const producers = 2

// appendRun sends the records and counts them in the journal afterwards.
func appendRun(ctx context.Context, o options, addr string, pid int) (result, error) {
	values := corpus(o.size)
	serverBefore, err := cpuOf(pid)
	if err != nil {
		return result{}, err
	}
	clientBefore, start := ownCPU(), time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range producers {
		group.Go(func() error { return produce(groupCtx, addr, values, o.records*(i+1)/producers-o.records*i/producers) })
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	r := result{name: "append", wall: time.Since(start), clientCPU: ownCPU() - clientBefore}
	serverAfter, err := cpuOf(pid)
	if err != nil {
		return result{}, err
	}
	r.serverCPU = serverAfter - serverBefore
	if r.records, err = countEnds(ctx, addr); err != nil {
		return result{}, err
	}
	if r.records != int64(o.records) {
		return result{}, fmt.Errorf("%d records sent, %d in the journal", o.records, r.records)
	}
	r.bytes = r.records * int64(o.size)
	return r, nil
}

// produce sends n records and waits until all are acknowledged.
func produce(ctx context.Context, addr string, values [][]byte, n int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(benchStream),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerBatchMaxBytes(1<<20),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(1<<20, false, false, nil)))
	if err != nil {
		return err
	}
	defer client.Close()
	var failed atomic.Pointer[error]
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	for i := range n {
		client.Produce(ctx, &kgo.Record{Value: values[i%len(values)]}, done)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// countEnds counts the records in the stream.
func countEnds(ctx context.Context, addr string) (n int64, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, benchStream)
	if err != nil {
		return 0, err
	}
	ends.Each(func(l kadm.ListedOffset) { n += l.Offset })
	return n, ends.Error()
}

// fetchRun reads the stream from its start and checks every record's size.
func fetchRun(ctx context.Context, o options, addr string, pid int) (result, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(benchStream),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(32<<20), kgo.FetchMaxPartitionBytes(4<<20))
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	serverBefore, err := cpuOf(pid)
	if err != nil {
		return result{}, err
	}
	clientBefore, start := ownCPU(), time.Now()
	r := result{name: "fetch"}
	for r.records < int64(o.records) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return result{}, err
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			r.records++
			r.bytes += int64(len(rec.Value))
		})
	}
	r.wall, r.clientCPU = time.Since(start), ownCPU()-clientBefore
	serverAfter, err := cpuOf(pid)
	r.serverCPU = serverAfter - serverBefore
	if r.bytes != int64(o.records)*int64(o.size) {
		return result{}, fmt.Errorf("%d bytes read, want %d", r.bytes, int64(o.records)*int64(o.size))
	}
	return r, err
}

// corpus returns distinct access-log lines as JSON objects of exactly size bytes, the
// same on each run. LZ4 takes them to about a quarter.
func corpus(size int) [][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	agents := []string{"Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "okhttp/4.12.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0)"}
	lines := make([][]byte, 16_384)
	for i := range lines {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"ts":%d,"remote":"10.%d.%d.%d","request":"GET /shop/items/%d?session=%016x HTTP/1.1","status":%d,"bytes":%d,"rt":0.%03d,"agent":%q,"ref":"/shop/search?q=%08x`,
			1_790_000_000_000+int64(i)*7, rnd.IntN(256), rnd.IntN(256), rnd.IntN(256), rnd.IntN(1e6), rnd.Uint64(),
			[]int{200, 200, 200, 304, 404, 500}[rnd.IntN(6)], rnd.IntN(1e5), rnd.IntN(1000), agents[rnd.IntN(len(agents))], rnd.Uint32())
		for b.Len() < size-2 {
			fmt.Fprintf(&b, "&item=%05d", rnd.IntN(3000))
		}
		b.Truncate(size - 2)
		b.WriteString(`"}`)
		lines[i] = b.Bytes()
	}
	return lines
}
