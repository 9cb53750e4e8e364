package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// client opens a session's client. One that knows nobody at first goes on asking.
func (w *Workload) client(ctx context.Context, more ...kgo.Opt) (*kgo.Client, error) {
	const hasty = 250 * time.Millisecond
	opts := []kgo.Opt{
		kgo.SeedBrokers(w.o.Seeds...),
		kgo.WithContext(ctx),
		kgo.MetadataMinAge(hasty), kgo.MetadataMaxAge(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return hasty }),
		kgo.RequestTimeoutOverhead(3 * time.Second),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.UnknownTopicRetries(-1),
	}
	if w.o.Dial != nil {
		opts = append(opts, kgo.Dialer(w.o.Dial))
	}
	c, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("opening a client: %w", err)
	}
	return c, nil
}

// padding makes records of different sizes.
var padding = strings.Repeat(" ", 4096)

// record makes the record of a value.
func (w *Workload) record(l *lot, stream string) (*kgo.Record, history.Sent) {
	p, v := w.drawPartition(l), w.rec.Value()
	return &kgo.Record{Topic: stream, Partition: p, Value: []byte(strconv.FormatInt(v, 10) + padding[:l.IntN(len(padding))])},
		history.Sent{Partition: history.NewPartition(stream, p), Value: v, Offset: history.Nowhere, Outcome: history.Unknown}
}

// valueOf returns a record's value; what no client can have written is -1, which nobody sent.
func valueOf(r *kgo.Record) int64 {
	v, err := strconv.ParseInt(strings.TrimRight(string(r.Value), " "), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

func readsOf(records []*kgo.Record) []history.Read {
	var reads []history.Read
	for _, r := range records {
		if !r.Attrs.IsControl() {
			reads = append(reads, history.Read{Partition: history.NewPartition(r.Topic, r.Partition), Offset: r.Offset, Value: valueOf(r)})
		}
	}
	return reads
}

// sendAll produces records and waits for all of them, or for patience. The outcomes are in sent; the error is of the
// first record that is not acknowledged.
func (w *Workload) sendAll(ctx context.Context, c *kgo.Client, records []*kgo.Record, sent []history.Sent) error {
	type ack struct {
		index int
		r     *kgo.Record
		err   error
	}
	acks := make(chan ack, len(records))
	for i, r := range records {
		c.Produce(ctx, r, func(r *kgo.Record, err error) { acks <- ack{i, r, err} })
	}
	timeout := time.NewTimer(w.o.Patience)
	defer timeout.Stop()
	var first error
	for range records {
		select {
		case a := <-acks:
			switch {
			case a.err == nil:
				sent[a.index].Outcome, sent[a.index].Offset = history.OK, a.r.Offset
			case first == nil:
				first = a.err
			}
		case <-timeout.C:
			return fmt.Errorf("no acknowledgement within %s", w.o.Patience)
		}
	}
	return first
}

// ended fills in how an operation ended whose error says nothing of whether it happened.
func ended(op *history.Op, err error) {
	op.Outcome = history.OK
	if err != nil {
		op.Outcome, op.Error = history.Unknown, err.Error()
	}
}

func exists(err error) bool { return errors.Is(err, kerr.TopicAlreadyExists) }
