package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// produce is a session of an idempotent producer, until it does not know how a send ended.
func (w *Workload) produce(ctx context.Context, l *lot) error {
	c, err := w.client(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer c.Close() // gives up what is still to be sent; what is on its way may arrive
	session := w.session(l)
	for w.pause(ctx, l) {
		stream := plain
		if l.IntN(4) == 0 {
			stream = ledger
		}
		op := w.rec.Begin(history.Op{Session: session, Kind: history.Send})
		records, sent := w.records(l, stream, 1+l.IntN(4))
		op.Sends = sent
		w.note(op)
		// The context is not the run's: a send that is cut off by the run's end would be unknown for no reason.
		ended(&op, w.sendAll(context.WithoutCancel(ctx), c, records, sent))
		w.rec.Done(op)
		if op.Outcome != history.OK {
			return nil
		}
	}
	return nil
}

// note takes down what an operation is about to send: it may be seen before its outcome is known.
func (w *Workload) note(op history.Op) {
	op.Outcome = history.Unknown
	op.Sends = append([]history.Sent(nil), op.Sends...)
	w.rec.Done(op)
}

func (w *Workload) records(l *lot, stream string, n int) ([]*kgo.Record, []history.Sent) {
	records, sent := make([]*kgo.Record, n), make([]history.Sent, n)
	for i := range records {
		records[i], sent[i] = w.record(l, stream)
	}
	return records, sent
}

// transact is a session of transactions that read the ledger and append to it, until one's end is unknown. The session
// that follows has the same transactional id, and so ends what this one left.
func (w *Workload) transact(ctx context.Context, l *lot) error {
	c, err := w.client(context.WithoutCancel(ctx),
		kgo.TransactionalID(fmt.Sprintf("transactor-%d", l.number)), kgo.TransactionTimeout(10*time.Second),
		kgo.ConsumePartitions(w.everywhere(kgo.NewOffset().AtStart(), ledger)), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer c.Close()
	session := w.session(l)
	w.seeks(session, 0, ledger)
	for w.pause(ctx, l) {
		if !w.transaction(context.WithoutCancel(ctx), c, l, session) {
			return nil
		}
	}
	return nil
}

// transaction says whether the session may go on.
func (w *Workload) transaction(ctx context.Context, c *kgo.Client, l *lot, session string) bool {
	if err := c.BeginTransaction(); err != nil {
		return false
	}
	op := w.rec.Begin(history.Op{Session: session, Kind: history.Txn, Committed: true})
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	op.Reads = readsOf(c.PollRecords(short, 20).Records())
	cancel()
	records, sent := w.records(l, ledger, 1+l.IntN(4))
	op.Sends = sent
	w.note(op)
	end, commit := history.Fail, kgo.TryAbort
	err := w.sendAll(ctx, c, records, sent)
	if err == nil && l.IntN(5) > 0 {
		end, commit = history.OK, kgo.TryCommit
		op.Ending = w.rec.Now()
		w.note(op)
	}
	if err == nil {
		short, cancel = context.WithTimeout(ctx, w.o.Patience)
		err = c.EndTransaction(short, commit)
		cancel()
	}
	switch {
	case err == nil:
		op.Outcome = end
	case op.Ending == 0:
		op.Outcome, op.Error = history.Fail, err.Error() // nobody will ever ask for its commit
	default:
		op.Outcome, op.Error = history.Unknown, err.Error()
	}
	w.rec.Done(op)
	return err == nil
}
