package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// initProducerID gives a producer its id and epoch. With a transactional id it
// fences whoever had it before, and ends what that one left open.
func (s *Server) initProducerID(c *call, req *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	var err error
	if req.TransactionalID == nil {
		if err = c.mayWriteSomewhere(); err == nil {
			ctx, cancel := c.soon()
			defer cancel()
			resp.ProducerID, err = s.node.NextProducerID(ctx)
			resp.ProducerEpoch = 0
		}
	} else if err = c.txn(kmsg.ACLOperationWrite, *req.TransactionalID); err == nil {
		var t *metadata.Transaction
		if t, err = s.txns.init(c.conn.server.ctx, req); err == nil {
			resp.ProducerID, resp.ProducerEpoch = t.ProducerID, t.Epoch
		}
	}
	resp.ErrorCode = fencedCode(coordinatorCode(err), c.version >= 4)
	return resp
}

// fencedCode puts the newer error for a fenced producer in place of the older one where
// the client knows it.
func fencedCode(code int16, newer bool) int16 {
	if newer && code == kerr.InvalidProducerEpoch.Code {
		return kerr.ProducerFenced.Code
	}
	return code
}

func (c *txnCoordinator) init(ctx context.Context, req *kmsg.InitProducerIDRequest) (*metadata.Transaction, error) {
	id := *req.TransactionalID
	timeout := time.Duration(req.TransactionTimeoutMillis) * time.Millisecond
	switch {
	case !validGroup(id): // the same rule
		return nil, kerr.InvalidRequest
	case timeout <= 0 || timeout > maxTxnTimeout:
		return nil, fmt.Errorf("%w: %v", kerr.InvalidTransactionTimeout, timeout)
	}
	if _, err := c.coordinate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	l := c.lockOf(id)
	l.Lock()
	defer l.Unlock()
	t, ok := c.node.Meta().Transaction(id)
	if !ok {
		return c.begin(ctx, metadata.Transaction{ID: id, TimeoutMillis: req.TransactionTimeoutMillis})
	}
	// A producer that names its id wants to go on after an error; it must be the
	// current one, or the one that did not see the answer to its last bump.
	known := req.ProducerID >= 0
	retry := known && req.ProducerID == t.ProducerID && req.ProducerEpoch == t.LastEpoch
	if known && !retry && (req.ProducerID != t.ProducerID || req.ProducerEpoch != t.Epoch) {
		return nil, metadata.ErrProducerFenced
	}
	open := t.State == metadata.TxnOngoing
	last := int16(-1)
	if known {
		last = req.ProducerEpoch
	}
	if err := c.settle(ctx, t, last); err != nil {
		return nil, fmt.Errorf("%w: %w", kerr.ConcurrentTransactions, err)
	}
	t, _ = c.node.Meta().Transaction(id)
	if retry && !open {
		return t, nil
	}
	next := *t
	next.TimeoutMillis, next.State = req.TransactionTimeoutMillis, metadata.TxnEmpty
	switch {
	case next.Epoch >= lastEpoch:
		return c.begin(ctx, next)
	case !open: // else the end of the transaction has raised the epoch
		next.Epoch, next.LastEpoch = t.Epoch+1, last
	}
	return c.node.PutTransaction(ctx, next)
}

// settle ends what the transactional id has open or decided. last is the epoch of
// the client that asks for it, or -1: its request may come again if the answer is
// lost, and must not find itself fenced by its own first try.
func (c *txnCoordinator) settle(ctx context.Context, t *metadata.Transaction, last int16) error {
	switch {
	case t.State == metadata.TxnOngoing:
		return c.fence(ctx, t, last)
	case t.Decided():
		return c.complete(ctx, t)
	}
	return nil
}

// begin gives a transactional id a fresh producer id, because it is new or its
// epochs are used up.
func (c *txnCoordinator) begin(ctx context.Context, t metadata.Transaction) (*metadata.Transaction, error) {
	producerID, err := c.node.NextProducerID(ctx)
	if err != nil {
		return nil, err
	}
	t.ProducerID, t.Epoch, t.LastEpoch = producerID, 0, -1
	t.State = metadata.TxnEmpty
	return c.node.PutTransaction(ctx, t)
}
