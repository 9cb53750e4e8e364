package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// child is a server in a process of its own.
type child struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
	says *strings.Builder // its standard error; read after it has ended
}

func newChild(t *testing.T) *child {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c := &child{t: t, dir: t.TempDir(), addr: addr}
	c.start()
	t.Cleanup(func() {
		if t.Failed() { // what does it do?
			_ = c.cmd.Process.Signal(syscall.SIGQUIT)
			_ = c.cmd.Wait()
			t.Logf("the server's goroutines:\n%s", c.says.String())
			return
		}
		c.kill()
	})
	return c
}

// start returns once the server listens.
func (c *child) start() {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+c.dir, childAddr+"="+c.addr)
	c.says = &strings.Builder{}
	cmd.Stderr = c.says
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "serving\n" {
		_ = cmd.Wait()
		c.t.Fatalf("the server did not start: %q, %v\n%s", line, err, c.says.String())
	}
	c.cmd = cmd
}

// kill ends the server without a warning.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.addr), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RequestRetries(1000),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// S45 and more: whatever was answered is there after SIGKILL, once, in order:
// records, transactions, committed offsets, topics.
func TestNothingAnsweredIsLostToSIGKILL(t *testing.T) {
	const kills = 20
	c := newChild(t)
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var plain, committedOffset, topics atomic.Int64
	var txns transactions

	load.Go(func() { // an idempotent producer, five requests in flight
		p := c.client(kgo.DefaultProduceTopic("plain"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(2<<10), kgo.StopProducerOnDataLossDetected())
		var pending sync.WaitGroup
		for i := 0; ctx.Err() == nil; i++ {
			pending.Add(1)
			p.Produce(context.Background(), &kgo.Record{Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("record %d: %v", i, err)
				}
				plain.Add(1)
				pending.Done()
			})
			if i%50 == 49 {
				pause(ctx, time.Millisecond)
			}
		}
		pending.Wait()
	})
	load.Go(func() { txns = c.transactions(ctx) })
	load.Go(func() { // offsets and topics
		adm := kadm.NewClient(c.client())
		for i := int64(1); ctx.Err() == nil; i++ {
			topic := fmt.Sprint("topic", i)
			if _, err := adm.CreateTopic(ctx, 1, 1, nil, topic); err == nil {
				topics.Store(i)
			} else if ctx.Err() == nil && !strings.Contains(err.Error(), "ALREADY_EXISTS") {
				i--
				continue
			}
			if err := adm.CommitAllOffsets(ctx, "g", offsetsOf("plain", 0, i)); err == nil {
				committedOffset.Store(i)
			}
			pause(ctx, 20*time.Millisecond)
		}
	})
	for range kills {
		pause(t.Context(), time.Duration(20+rand.IntN(150))*time.Millisecond)
		c.kill()
		c.start()
	}
	cancel()
	load.Wait()
	c.kill()
	c.start()
	t.Logf("%d records, %d transactions and %d in doubt, offset %d, %d topics over %d kills",
		plain.Load(), txns.n-len(txns.doubtful), len(txns.doubtful), committedOffset.Load(), topics.Load(), kills)
	c.checkAll(plain.Load(), committedOffset.Load(), topics.Load())
	c.checkTransactions(txns)
}

// transactions is what a producer of transactions knows at its end. doubtful are
// those whose commit was not answered.
type transactions struct {
	n        int
	doubtful map[int]bool
}

// transactions commits transactions of three records until ctx ends, and then one
// more, so that readers know where to stop.
func (c *child) transactions(ctx context.Context) transactions {
	producer := func() *kgo.Client {
		return c.client(kgo.TransactionalID("id"), kgo.DefaultProduceTopic("txn"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	p := producer()
	done := transactions{doubtful: map[int]bool{}}
	for last := false; !last; done.n++ {
		last = ctx.Err() != nil
		if p.BeginTransaction() != nil {
			// The client has given itself up: it takes a connection that a kill has
			// ended before the first answer for a refusal.
			p.Close()
			p = producer()
			done.doubtful[done.n], last = true, false
			continue
		}
		var failed atomic.Bool
		for i := range 3 {
			p.Produce(context.Background(), &kgo.Record{Value: fmt.Appendf(nil, "%d.%d", done.n, i)}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(true)
				}
			})
		}
		if err := p.Flush(context.Background()); err != nil {
			c.t.Errorf("transaction %d: %v", done.n, err)
			return done
		}
		if !failed.Load() && p.EndTransaction(context.Background(), kgo.TryCommit) == nil {
			continue
		}
		done.doubtful[done.n], last = true, false
		if p.EndTransaction(context.Background(), kgo.TryAbort) != nil {
			p.Close()
			p = producer() // ends what its predecessor left open
		}
	}
	return done
}

// checkTransactions reads what is committed: all of a transaction or nothing, in
// order, and nothing missing but what is in doubt.
func (c *child) checkTransactions(txns transactions) {
	reader := c.client(kgo.ConsumeTopics("txn"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	ctx, cancel := context.WithTimeout(c.t.Context(), 60*time.Second)
	defer cancel()
	next, inside := 0, 0
	for next < txns.n {
		fetches := reader.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			c.t.Fatalf("reading after transaction %d of %d: %v", next, txns.n, err)
		}
		if fetches.Empty() {
			continue
		}
		got := string(fetches.Records()[0].Value)
		for inside == 0 && got != fmt.Sprintf("%d.0", next) && txns.doubtful[next] {
			next++
		}
		if want := fmt.Sprintf("%d.%d", next, inside); got != want {
			c.t.Fatalf("committed is %s, want %s", got, want)
		}
		if inside++; inside == 3 {
			next, inside = next+1, 0
		}
	}
}

func (c *child) checkAll(plain, offset, topics int64) {
	t := c.t
	for i, r := range consume(t, c.client(kgo.ConsumeTopics("plain")), int(plain)) {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s: lost, doubled or out of order", i, r.Value)
		}
	}
	adm := kadm.NewClient(c.client())
	got, err := adm.FetchOffsets(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := got.Lookup("plain", 0); o.At < offset {
		t.Errorf("the group is at %d, answered was %d", o.At, offset)
	}
	listed, err := adm.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(1); i <= topics; i++ {
		if !listed.Has(fmt.Sprint("topic", i)) {
			t.Errorf("topic%d was created and is gone", i)
		}
	}
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
