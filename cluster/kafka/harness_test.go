package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// broker is a node with its Kafka face, reached by TCP or inside the process.
type broker struct {
	t      *testing.T
	pipe   bool
	nopts  cluster.Options
	kopts  kafka.Options
	node   *cluster.Node
	server atomic.Pointer[kafka.Server] // clients dial while the test restarts it
	addr   string
	stop   func()

	timeoutMillis int32 // of raw produce requests; 0 is long
}

// bothWays runs a test over TCP and over net.Pipe: what holds for one must hold
// for the other.
func bothWays(t *testing.T, test func(t *testing.T, b *broker)) {
	t.Helper()
	for _, way := range []string{"tcp", "pipe"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, newBroker(t, way == "pipe"))
		})
	}
}

// newBroker starts a node in a directory of its own.
func newBroker(t *testing.T, pipe bool, change ...func(*cluster.Options, *kafka.Options)) *broker {
	t.Helper()
	b := &broker{t: t, pipe: pipe}
	b.nopts = cluster.Options{Dir: t.TempDir(), SegmentBytes: 4 << 20, Logger: testLogger(t)}
	b.kopts = kafka.Options{Logger: testLogger(t)}
	for _, f := range change {
		f(&b.nopts, &b.kopts)
	}
	b.start()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *broker) start() {
	b.t.Helper()
	node, err := cluster.Open(b.nopts)
	if err != nil {
		b.t.Fatalf("opening the node: %v", err)
	}
	kopts := b.kopts
	kopts.Node = node
	server, err := kafka.New(kopts)
	if err != nil {
		b.t.Fatal(err)
	}
	addr := b.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l := listen(b.t, addr)
	b.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(ctx, l, kafka.Access{}); err != nil {
			b.t.Errorf("serving: %v", err)
		}
	})
	b.node = node
	b.server.Store(server)
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(server.Close(), node.Close()); err != nil {
			b.t.Errorf("closing: %v", err)
		}
		serving.Wait()
	})
}

// listen waits for an address that a former server of this test has just left.
func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return l
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// restart closes everything and opens the directory again, under the same
// address.
func (b *broker) restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

// client returns a client of this broker.
func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	base := []kgo.Opt{
		kgo.SeedBrokers(b.addr),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.RequestRetries(1000),
		kgo.AllowAutoTopicCreation(),
	}
	if b.pipe {
		base = append(base, kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return b.server.Load().Dial(ctx) }))
	}
	c, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

func (b *broker) admin() *kadm.Client { return kadm.NewClient(b.client()) }

// topic creates a topic.
func (b *broker) topic(name string, partitions int32, configs map[string]string) {
	b.t.Helper()
	given := map[string]*string{}
	for k, v := range configs {
		given[k] = kadm.StringPtr(v)
	}
	if _, err := b.admin().CreateTopic(b.t.Context(), partitions, 1, given, name); err != nil {
		b.t.Fatalf("creating %s: %v", name, err)
	}
}

// produce sends records and fails the test if one is not stored.
func produce(t *testing.T, c *kgo.Client, records ...*kgo.Record) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	results := c.ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		t.Fatalf("producing: %v", err)
	}
	return records
}

// consume polls until it has n records.
func consume(t *testing.T, c *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got []*kgo.Record
	for len(got) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("fetching after %d of %d records: %v", len(got), n, err)
		}
		got = append(got, fetches.Records()...)
	}
	if len(got) > n {
		t.Fatalf("got %d records, want %d", len(got), n)
	}
	return got
}

// numbered returns n records whose values are their numbers.
func numbered(topic string, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "value %d", i)}
	}
	return records
}

// eventually polls until ok, and fails the test with what the last try said.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// testLogger writes to the test's log.
func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// capture returns a logger and what it was given.
func capture() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var buf bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return buf.Write(p)
	})
	return slog.New(slog.NewTextHandler(w, nil)), func() string {
		mu.Lock()
		defer mu.Unlock()
		return buf.String()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
