package pipeline_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/pipeline"
)

// brokers is a journal that tests reach by its addresses.
type brokers interface{ ListenAddrs() []string }

// cluster starts an empty journal that speaks the real protocol.
func cluster(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// open returns a client of the journal.
func open(t *testing.T, c brokers, change ...func(*pipeline.JournalOptions)) *pipeline.Journal {
	t.Helper()
	o := pipeline.JournalOptions{Seeds: c.ListenAddrs()}
	for _, f := range change {
		f(&o)
	}
	j, err := pipeline.OpenJournal(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// remote makes a journal one that others write to as well.
func remote(o *pipeline.JournalOptions) { o.Remote = true }

// cable is a connection to the journal that can be cut, as a process is killed: what
// was not sent never is, and no answer comes.
type cable struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *cable) plug(o *pipeline.JournalOptions) { o.Dialer = c.dial }

func (c *cable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = conn.Close()
		return nil, errors.New("the cable is cut")
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// contents returns the committed records of a stream, by partition, each in order;
// none where there is no such stream.
func contents(t *testing.T, c brokers, stream string) map[int32][]*kgo.Record {
	t.Helper()
	j := open(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	ends, err := j.CommittedEnds(ctx, stream)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(stream), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	out, open := map[int32][]*kgo.Record{}, map[int32]bool{}
	for p, end := range ends {
		if end > 0 {
			open[p.Number] = true
		}
	}
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(k *kgo.Record) {
			if !k.Attrs.IsControl() {
				out[k.Partition] = append(out[k.Partition], k)
			}
			if k.Offset+1 >= ends[pipeline.Partition{Stream: stream, Number: k.Partition}] {
				delete(open, k.Partition)
			}
		})
	}
	return out
}

func headerOf(k *kgo.Record, name string) string {
	for _, h := range k.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// eventually polls until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
