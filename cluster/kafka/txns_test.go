package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// txnProducer returns a producer of transactions.
func txnProducer(b *broker, id string, opts ...kgo.Opt) *kgo.Client {
	return b.client(append([]kgo.Opt{kgo.TransactionalID(id), kgo.DefaultProduceTopic("t")}, opts...)...)
}

// inTxn produces values in one transaction and ends it.
func inTxn(t *testing.T, c *kgo.Client, end kgo.TransactionEndTry, values ...string) {
	t.Helper()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		produce(t, c, &kgo.Record{Value: []byte(v)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.EndTransaction(ctx, end); err != nil {
		t.Fatalf("ending the transaction: %v", err)
	}
}

// committed reads n values as a reader of committed records.
func committed(t *testing.T, b *broker, n int) []string {
	t.Helper()
	c := b.client(kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer c.Close()
	var values []string
	for _, r := range consume(t, c, n) {
		values = append(values, string(r.Value))
	}
	return values
}

func TestReadersOfCommittedRecordsSeeNoAbortedOnes(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id")
		inTxn(t, c, kgo.TryCommit, "a", "b")
		inTxn(t, c, kgo.TryAbort, "lost", "too")
		inTxn(t, c, kgo.TryCommit, "c")
		check := func() {
			t.Helper()
			if got := fmt.Sprint(committed(t, b, 3)); got != "[a b c]" {
				t.Errorf("committed are %v, want [a b c]", got)
			}
			all := b.client(kgo.ConsumeTopics("t"))
			defer all.Close()
			if got := consume(t, all, 5); string(got[2].Value) != "lost" {
				t.Errorf("a reader of everything got %s at place 2, want lost", got[2].Value)
			}
		}
		check()
		b.restart()
		check()
		inTxn(t, c, kgo.TryCommit, "d") // the same producer goes on
		if got := fmt.Sprint(committed(t, b, 4)); got != "[a b c d]" {
			t.Errorf("committed are %v, want [a b c d]", got)
		}
	})
}

func TestOpenTransactionHoldsReadersBack(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id")
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("open")})
		produce(t, b.client(kgo.DefaultProduceTopic("t")), &kgo.Record{Value: []byte("plain")})
		stable, err := b.admin().ListCommittedOffsets(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := stable.Lookup("t", 0); o.Offset != 0 {
			t.Errorf("last stable offset is %d, want 0", o.Offset)
		}
		p := fetchRaw(t, b, "t", func(r *kmsg.FetchRequest, _ *kmsg.FetchRequestTopicPartition) { r.IsolationLevel = 1 })
		if len(p.RecordBatches) != 0 || p.LastStableOffset != 0 || p.HighWatermark != 2 {
			t.Errorf("fetch gave %d bytes, stable %d, end %d; want nothing, 0, 2", len(p.RecordBatches), p.LastStableOffset, p.HighWatermark)
		}
		if err := c.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(committed(t, b, 2)); got != "[open plain]" {
			t.Errorf("committed are %v", got)
		}
	})
}

func TestNewIncarnationFencesTheOldOne(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		old := txnProducer(b, "id")
		if err := old.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, old, &kgo.Record{Value: []byte("zombie")})
		inTxn(t, txnProducer(b, "id"), kgo.TryCommit, "new")
		err := old.ProduceSync(t.Context(), &kgo.Record{Value: []byte("late")}).FirstErr()
		if err == nil {
			err = old.EndTransaction(t.Context(), kgo.TryCommit)
		}
		if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
			t.Errorf("the old incarnation got %v, want to be fenced", err)
		}
		if got := fmt.Sprint(committed(t, b, 1)); got != "[new]" {
			t.Errorf("committed are %v, want [new]", got)
		}
	})
}

// A transaction that nobody ends must not hold readers back for ever.
func TestOverdueTransactionIsAborted(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id", kgo.TransactionTimeout(200*time.Millisecond))
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("overdue")})
		produce(t, b.client(kgo.DefaultProduceTopic("t")), &kgo.Record{Value: []byte("plain")})
		if got := fmt.Sprint(committed(t, b, 1)); got != "[plain]" {
			t.Errorf("committed are %v, want [plain]", got)
		}
		if err := c.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
			t.Error("the overdue transaction was committed all the same")
		}
	})
}

// Its start may have been noted by a clock that was ahead.
func TestOverdueTransactionOfTheFutureIsAborted(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id", kgo.TransactionTimeout(2*time.Second))
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("overdue")})
		txn, ok := b.node.Meta().Transaction("id")
		if !ok {
			t.Fatal("there is no transaction")
		}
		ahead := *txn
		ahead.StartedMillis += time.Hour.Milliseconds()
		if _, err := b.node.PutTransaction(t.Context(), ahead); err != nil {
			t.Fatal(err)
		}
		produce(t, b.client(kgo.DefaultProduceTopic("t")), &kgo.Record{Value: []byte("plain")})
		if got := fmt.Sprint(committed(t, b, 1)); got != "[plain]" {
			t.Errorf("committed are %v, want [plain]", got)
		}
	})
}

func TestOffsetsCommitWithTheirTransaction(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("in", 10)...)
		session, err := kgo.NewGroupTransactSession(sessionOpts(b)...)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		committedAt := func() int64 {
			got, err := b.admin().FetchOffsets(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			o, ok := got.Lookup("in", 0)
			if !ok {
				return -1
			}
			return o.At
		}
		for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
			if err := session.Begin(); err != nil {
				t.Fatal(err)
			}
			n := 0
			for n < 10 {
				session.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
					n++
					session.Produce(t.Context(), &kgo.Record{Topic: "t", Value: r.Value}, nil)
				})
			}
			ended, err := session.End(t.Context(), end)
			if err != nil || ended != bool(end) {
				t.Fatalf("ended %v, %v; want %v", ended, err, end)
			}
			want := int64(-1)
			if end == kgo.TryCommit {
				want = 10
			}
			if got := committedAt(); got != want {
				t.Errorf("after end %v the group is at %d, want %d", end, got, want)
			}
		}
		if got := committed(t, b, 10); got[9] != "value 9" {
			t.Errorf("committed are %v", got)
		}
		b.restart()
		if got := committedAt(); got != 10 {
			t.Errorf("after the restart the group is at %d, want 10", got)
		}
	})
}

// While a transaction has offsets pending, who asks for stable ones must
// wait; it must get the same answer after a restart, and not wait for ever.
func TestPendingOffsetsAreUnstableUntilTheTransactionEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("in", 1, nil)
		c := txnProducer(b, "id", kgo.TransactionTimeout(3*time.Second))
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		id, epoch, err := c.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = "id", id, epoch, "g"
		if resp, err := add.RequestWith(t.Context(), c); err != nil || resp.ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		commit := kmsg.NewPtrTxnOffsetCommitRequest()
		commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = "id", id, epoch, "g"
		commit.Generation = -1
		topic := kmsg.NewTxnOffsetCommitRequestTopic()
		topic.Topic = "in"
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Offset, p.LeaderEpoch = 5, -1
		topic.Partitions = append(topic.Partitions, p)
		commit.Topics = append(commit.Topics, topic)
		if resp, err := commit.RequestWith(t.Context(), c); err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		stable := func() int16 {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Group, req.RequireStable = "g", true
			asked := kmsg.NewOffsetFetchRequestTopic()
			asked.Topic, asked.Partitions = "in", []int32{0}
			req.Topics = append(req.Topics, asked)
			resp, err := b.client(kgo.RetryTimeout(time.Second)).Request(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			return resp.(*kmsg.OffsetFetchResponse).Topics[0].Partitions[0].ErrorCode
		}
		for range 2 {
			if code := stable(); code != kerr.UnstableOffsetCommit.Code {
				t.Errorf("got %v, want UNSTABLE_OFFSET_COMMIT", kerr.ErrorForCode(code))
			}
			b.restart()
		}
		eventually(t, "the overdue transaction's end", func() error { return kerr.ErrorForCode(stable()) })
	})
}

func sessionOpts(b *broker) []kgo.Opt {
	probe := b.client()
	return append(probe.Opts(), kgo.TransactionalID("etl"), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// The decision to commit is made before the markers are written; a stop between
// them must not lose it.
func TestTransactionOpenAtARestartEndsAsItsProducerSays(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id")
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("before")})
		b.restart()
		produce(t, c, &kgo.Record{Value: []byte("after")})
		if err := c.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(committed(t, b, 2)); got != "[before after]" {
			t.Errorf("committed are %v", got)
		}
		listed, err := b.admin().ListTransactions(t.Context(), nil, nil)
		if err != nil || listed["id"].State != "CompleteCommit" {
			t.Errorf("transaction is %+v, %v", listed["id"], err)
		}
	})
}

func TestBatchOutsideItsTransactionIsRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		old := kgo.MaxVersions(kversion.V3_6_0()) // transactions' version 1
		c := txnProducer(b, "id", old)
		inTxn(t, c, kgo.TryCommit, "a")
		id, producerEpoch, err := c.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The batch of a transaction that has ended, as a delayed request brings it.
		code, _ := produceRawWith(t, b, b.client(old), "t", kadm.StringPtr("id"), txnBatch(id, producerEpoch, 1, "late"))
		if code != kerr.InvalidTxnState.Code {
			t.Errorf("late batch: %v, want INVALID_TXN_STATE", kerr.ErrorForCode(code))
		}
		if got := fmt.Sprint(committed(t, b, 1)); got != "[a]" {
			t.Errorf("committed are %v, want [a]", got)
		}
	})
}

// A client whose answer was lost asks again with the epoch it knows; its own first
// try must not have fenced it.
func TestRepeatedInitProducerIDGetsTheSameEpoch(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		init := func(id int64, epoch int16) (int64, int16, int16) {
			t.Helper()
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis = kadm.StringPtr("id"), 60_000
			req.ProducerID, req.ProducerEpoch = id, epoch
			resp, err := req.RequestWith(t.Context(), b.client())
			if err != nil {
				t.Fatal(err)
			}
			return resp.ProducerID, resp.ProducerEpoch, resp.ErrorCode
		}
		id, epoch, _ := init(-1, -1)
		for _, open := range []bool{false, true} {
			if open {
				add := kmsg.NewPtrAddPartitionsToTxnRequest()
				add.TransactionalID, add.ProducerID, add.ProducerEpoch = "id", id, epoch
				topic := kmsg.NewAddPartitionsToTxnRequestTopic()
				topic.Topic, topic.Partitions = "t", []int32{0}
				add.Topics = append(add.Topics, topic)
				resp, err := add.RequestWith(t.Context(), b.client())
				if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
					t.Fatal(err, resp)
				}
			}
			firstID, firstEpoch, code := init(id, epoch)
			if code != 0 || firstID != id || firstEpoch != epoch+1 {
				t.Fatalf("open %v: got %d/%d, %v; want %d/%d", open, firstID, firstEpoch, kerr.ErrorForCode(code), id, epoch+1)
			}
			b.restart()
			if againID, againEpoch, code := init(id, epoch); code != 0 || againID != firstID || againEpoch != firstEpoch {
				t.Errorf("open %v: asked again got %d/%d, %v; want %d/%d", open, againID, againEpoch, kerr.ErrorForCode(code), firstID, firstEpoch)
			}
			if _, _, code := init(id, epoch-1); code != kerr.ProducerFenced.Code {
				t.Errorf("open %v: an older incarnation got %v, want PRODUCER_FENCED", open, kerr.ErrorForCode(code))
			}
			epoch = firstEpoch
		}
	})
}
