package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// Settle is for a journal that nothing disturbs any more. It waits until every partition takes a record again and no
// transaction is open, then reads all partitions whole: through the leaders, through each rack, and from each observer.
func (w *Workload) Settle(ctx context.Context) error {
	c, err := w.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := w.recover(ctx, c); err != nil {
		return err
	}
	ends, err := w.stable(ctx, c)
	if err != nil {
		return err
	}
	var errs []error
	scan := func(where string, opt kgo.Opt) {
		for _, committed := range []bool{true, false} {
			errs = append(errs, w.scan(ctx, where, opt, committed, ends))
		}
	}
	scan("leaders", kgo.Rack(""))
	for _, rack := range w.o.Racks {
		scan(rack, kgo.Rack(rack))
	}
	for _, observer := range w.o.Observers {
		scan("observer "+observer, kgo.SeedBrokers(observer))
	}
	return errors.Join(errs...)
}

// recover sends a record to every partition until it is acknowledged.
func (w *Workload) recover(ctx context.Context, c *kgo.Client) error {
	session := "settler"
	for _, stream := range []string{plain, ledger} {
		for p := range w.o.Partitions {
			op := w.rec.Begin(history.Op{Session: session, Kind: history.Send})
			v := w.rec.Value()
			op.Sends = []history.Sent{{Partition: history.NewPartition(stream, p), Value: v, Offset: history.Nowhere, Outcome: history.Unknown}}
			w.note(op)
			begun := time.Now()
			r := &kgo.Record{Topic: stream, Partition: p, Value: fmt.Append(nil, v)}
			err := c.ProduceSync(ctx, r).FirstErr()
			if err == nil {
				op.Sends[0].Outcome, op.Sends[0].Offset = history.OK, r.Offset
			}
			ended(&op, err)
			w.rec.Done(op)
			if err != nil {
				return fmt.Errorf("%s/%d takes no record, %s after everything was healed: %w", stream, p, time.Since(begun).Round(time.Second), err)
			}
		}
	}
	return nil
}

// stable waits until nothing is open in any partition, and returns the ends.
func (w *Workload) stable(ctx context.Context, c *kgo.Client) (ends map[history.Partition]int64, err error) {
	return ends, retry(ctx, "waiting for open transactions", func(ctx context.Context) error {
		if ends, err = w.ends(ctx, c, "settler", false); err != nil {
			return err
		}
		committed, err := w.ends(ctx, c, "settler", true)
		if err != nil {
			return err
		}
		for p, end := range ends {
			if committed[p] < end {
				return fmt.Errorf("%s: the last stable offset stays at %d, the end is %d", p, committed[p], end)
			}
		}
		return nil
	})
}

// scan reads all partitions up to their ends, from where opt says.
func (w *Workload) scan(ctx context.Context, where string, opt kgo.Opt, committed bool, ends map[history.Partition]int64) error {
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	// Markers are kept, for who waits for an end that is one.
	c, err := w.client(ctx, kgo.ConsumePartitions(w.everywhere(kgo.NewOffset().AtStart(), plain, ledger)), kgo.FetchIsolationLevel(isolation), opt, kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer c.Close()
	op := history.Op{Session: fmt.Sprintf("scan.%s.%t", where, committed), Kind: history.Scan, Committed: committed}
	left := map[history.Partition]int64{}
	for p, end := range ends {
		op.Positions = append(op.Positions, history.Position{Partition: p, End: end})
		if end > 0 {
			left[p] = end
		}
	}
	op = w.rec.Begin(op)
	short, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	for len(left) > 0 && short.Err() == nil {
		for _, r := range c.PollFetches(short).Records() {
			p := history.NewPartition(r.Topic, r.Partition)
			if r.Offset >= ends[p] {
				continue
			}
			op.Reads = append(op.Reads, readsOf([]*kgo.Record{r})...)
			if r.Offset == ends[p]-1 {
				delete(left, p)
			}
		}
	}
	if len(left) > 0 {
		err = fmt.Errorf("scanning %s, committed %t: these ends were not reached within %s: %v", where, committed, whole, left)
	}
	ended(&op, err)
	w.rec.Done(op)
	return err
}
