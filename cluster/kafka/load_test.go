package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/retry"
)

// load is what clients do while servers die, and what they were answered.
type load struct {
	t      *testing.T
	client func(...kgo.Opt) *kgo.Client

	plain     atomic.Int64 // records of the idempotent producer
	committed atomic.Int64 // the group's offset
	topics    atomic.Int64 // created
	txns      transactions
}

func newLoad(t *testing.T, client func(...kgo.Opt) *kgo.Client) *load {
	return &load{t: t, client: client}
}

// run runs the load while trouble does.
func (l *load) run(trouble func(context.Context)) {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { l.produce(ctx) })
	all.Go(func() { l.txns = l.transactions(ctx) })
	all.Go(func() { l.administer(ctx) })
	trouble(ctx)
	cancel()
	all.Wait()
	l.t.Logf("%d records, %d transactions and %d in doubt, offset %d, %d topics",
		l.plain.Load(), l.txns.n-len(l.txns.doubtful), len(l.txns.doubtful), l.committed.Load(), l.topics.Load())
}

// check compares what is there with what was answered.
func (l *load) check() {
	l.t.Helper()
	l.checkPlain()
	l.checkTransactions()
}

// produce is an idempotent producer, five requests in flight. Every record is answered
// for in the end: it goes on trying.
func (l *load) produce(ctx context.Context) {
	p := l.client(kgo.DefaultProduceTopic("plain"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(2<<10), kgo.StopProducerOnDataLossDetected())
	var pending sync.WaitGroup
	for i := 0; ctx.Err() == nil; i++ {
		pending.Add(1)
		p.Produce(context.Background(), &kgo.Record{Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				l.t.Errorf("record %d: %v", i, err)
			}
			l.plain.Add(1)
			pending.Done()
		})
		if i%50 == 49 {
			retry.Pause(ctx, time.Millisecond)
		}
	}
	pending.Wait()
}

// administer creates topics and commits offsets.
func (l *load) administer(ctx context.Context) {
	adm := kadm.NewClient(l.client())
	for i := int64(1); ctx.Err() == nil; i++ {
		topic := fmt.Sprint("topic", i)
		if _, err := adm.CreateTopic(ctx, 1, -1, nil, topic); err == nil {
			l.topics.Store(i)
		} else if ctx.Err() == nil && !strings.Contains(err.Error(), "ALREADY_EXISTS") {
			i--
			continue
		}
		if err := adm.CommitAllOffsets(ctx, "g", offsetsOf("plain", 0, i)); err == nil {
			l.committed.Store(i)
		}
		retry.Pause(ctx, 20*time.Millisecond)
	}
}

// transactions is what a producer of transactions knows at its end. doubtful are
// those whose commit was not answered.
type transactions struct {
	n        int
	doubtful map[int]bool
}

// transactions commits transactions of three records, and one elsewhere, until ctx ends, and then one
// more, so that readers know where to stop.
func (l *load) transactions(ctx context.Context) transactions {
	producer := func() *kgo.Client {
		return l.client(kgo.TransactionalID("id"), kgo.DefaultProduceTopic("txn"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
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
		other := &kgo.Record{Topic: "txn2", Value: fmt.Append(nil, done.n)} // another journal, maybe another node's
		p.Produce(context.Background(), other, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(true)
			}
		})
		if err := p.Flush(context.Background()); err != nil {
			l.t.Errorf("transaction %d: %v", done.n, err)
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

// checkTransactions reads what is committed: all of a transaction, in both topics, or nothing, in
// order, and nothing missing but what is in doubt.
func (l *load) checkTransactions() {
	txns := l.txns
	reader := l.client(kgo.ConsumeTopics("txn"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	next, inside := 0, 0
	var seen []int
	for next < txns.n {
		fetches := reader.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			l.t.Fatalf("reading after transaction %d of %d: %v", next, txns.n, err)
		}
		if fetches.Empty() {
			continue
		}
		got := string(fetches.Records()[0].Value)
		for inside == 0 && got != fmt.Sprintf("%d.0", next) && txns.doubtful[next] {
			next++
		}
		if want := fmt.Sprintf("%d.%d", next, inside); got != want {
			l.t.Fatalf("committed is %s, want %s", got, want)
		}
		if inside++; inside == 3 {
			seen, next, inside = append(seen, next), next+1, 0
		}
	}
	l.checkOther(seen)
}

// checkOther reads the topic that got one record of every transaction.
func (l *load) checkOther(seen []int) {
	reader := l.client(kgo.ConsumeTopics("txn2"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for i, r := range consume(l.t, reader, len(seen)) {
		if want := fmt.Sprint(seen[i]); string(r.Value) != want {
			l.t.Fatalf("committed in the other topic is transaction %s, want %s", r.Value, want)
		}
	}
}

func (l *load) checkPlain() {
	t, plain, offset, topics := l.t, l.plain.Load(), l.committed.Load(), l.topics.Load()
	for i, r := range consume(t, l.client(kgo.ConsumeTopics("plain")), int(plain)) {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s: lost, doubled or out of order", i, r.Value)
		}
	}
	adm := kadm.NewClient(l.client())
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
