package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

func endTxn(t *testing.T, c *kgo.Client, producer int64, epoch int16, commit bool) *kmsg.EndTxnResponse {
	t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "id", producer, epoch, commit
	resp, err := req.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// An EndTxn that the network held back committed the producer's next
// transaction.
func TestDelayedEndTxnDoesNotReachTheNextTransaction(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id")
		inTxn(t, c, kgo.TryCommit, "a")
		id, epoch, err := c.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("b")})
		for _, commit := range []bool{true, false} {
			if resp := endTxn(t, b.client(), id, epoch-1, commit); resp.ErrorCode != kerr.ProducerFenced.Code {
				t.Errorf("the former transaction's EndTxn (commit %v): %v, want PRODUCER_FENCED", commit, kerr.ErrorForCode(resp.ErrorCode))
			}
		}
		// Nor does a batch that was held back.
		code := produceRaw(t, b, "t", kadm.StringPtr("id"), txnBatch(id, epoch-1, 1, "late"))
		if code != kerr.InvalidProducerEpoch.Code {
			t.Errorf("the former transaction's batch: %v, want INVALID_PRODUCER_EPOCH", kerr.ErrorForCode(code))
		}
		if err := c.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		inTxn(t, c, kgo.TryCommit, "c")
		if got := fmt.Sprint(committed(t, b, 2)); got != "[a c]" {
			t.Errorf("committed are %v, want [a c]", got)
		}
	})
}

func TestRepeatedEndTxnGetsTheSameEpoch(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := txnProducer(b, "id")
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, &kgo.Record{Value: []byte("a")})
		id, epoch, err := c.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			resp := endTxn(t, b.client(), id, epoch, true)
			if resp.ErrorCode != 0 || resp.ProducerID != id || resp.ProducerEpoch != epoch+1 {
				t.Errorf("try %d: %v, producer %d epoch %d; want %d and %d", i, kerr.ErrorForCode(resp.ErrorCode), resp.ProducerID, resp.ProducerEpoch, id, epoch+1)
			}
		}
		if resp := endTxn(t, b.client(), id, epoch, false); resp.ErrorCode != kerr.InvalidTxnState.Code {
			t.Errorf("aborting what is committed: %v, want INVALID_TXN_STATE", kerr.ErrorForCode(resp.ErrorCode))
		}
		// Without a transaction there is nothing to commit, but to abort is allowed: the
		// client may not know whether its first batch arrived.
		if resp := endTxn(t, b.client(), id, epoch+1, true); resp.ErrorCode != kerr.InvalidTxnState.Code {
			t.Errorf("committing nothing: %v, want INVALID_TXN_STATE", kerr.ErrorForCode(resp.ErrorCode))
		}
		if resp := endTxn(t, b.client(), id, epoch+1, false); resp.ErrorCode != 0 || resp.ProducerEpoch != epoch+2 {
			t.Errorf("aborting nothing: %v, epoch %d; want %d", kerr.ErrorForCode(resp.ErrorCode), resp.ProducerEpoch, epoch+2)
		}
	})
}

// The epochs of a producer id are used up after 32,767 transactions.
func TestProducerWhoseEpochsAreUsedUpGetsAnotherID(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		seed, err := b.node.PutTransaction(t.Context(), metadata.Transaction{
			ID: "id", ProducerID: 500_000, Epoch: 1<<15 - 2, LastEpoch: -1, TimeoutMillis: 60_000, State: metadata.TxnEmpty,
		})
		if err != nil {
			t.Fatal(err)
		}
		if code := produceRaw(t, b, "t", kadm.StringPtr("id"), txnBatch(seed.ProducerID, seed.Epoch, 0, "a")); code != 0 {
			t.Fatal(kerr.ErrorForCode(code))
		}
		var next int64
		for i := range 2 {
			resp := endTxn(t, b.client(), seed.ProducerID, seed.Epoch, true)
			if resp.ErrorCode != 0 || resp.ProducerID == seed.ProducerID || resp.ProducerEpoch != 0 {
				t.Fatalf("try %d: %v, producer %d epoch %d; want another one's epoch 0", i, kerr.ErrorForCode(resp.ErrorCode), resp.ProducerID, resp.ProducerEpoch)
			}
			if i == 1 && resp.ProducerID != next {
				t.Errorf("the second try got producer %d, the first %d", resp.ProducerID, next)
			}
			next = resp.ProducerID
		}
		if code := produceRaw(t, b, "t", kadm.StringPtr("id"), txnBatch(next, 0, 0, "b")); code != 0 {
			t.Fatal(kerr.ErrorForCode(code))
		}
		if resp := endTxn(t, b.client(), next, 0, true); resp.ErrorCode != 0 || resp.ProducerEpoch != 1 {
			t.Errorf("the new producer's end: %v, epoch %d", kerr.ErrorForCode(resp.ErrorCode), resp.ProducerEpoch)
		}
		if got := fmt.Sprint(committed(t, b, 2)); got != "[a b]" {
			t.Errorf("committed are %v, want [a b]", got)
		}
	})
}
