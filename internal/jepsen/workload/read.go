package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// everywhere is a place in all partitions of streams.
func (w *Workload) everywhere(o kgo.Offset, streams ...string) map[string]map[int32]kgo.Offset {
	all := map[string]map[int32]kgo.Offset{}
	for _, s := range streams {
		all[s] = map[int32]kgo.Offset{}
		for p := range w.o.Partitions {
			all[s][p] = o
		}
	}
	return all
}

// seeks takes down that a session goes on from an offset of all partitions.
func (w *Workload) seeks(session string, offset int64, streams ...string) {
	op := w.rec.Begin(history.Op{Session: session, Kind: history.Seek})
	for _, s := range streams {
		for p := range w.o.Partitions {
			op.Positions = append(op.Positions, history.Position{Partition: history.NewPartition(s, p), Offset: offset})
		}
	}
	op.Outcome = history.OK
	w.rec.Done(op)
}

// read is a session of a reader, from the replica of a rack or from leaders.
func (w *Workload) read(ctx context.Context, l *lot) error {
	return w.readFrom(ctx, l, kgo.Rack(w.drawRack(l)))
}

// watch is a session of a reader from an observer, which has what is committed and never more.
func (w *Workload) watch(ctx context.Context, l *lot) error {
	return w.readFrom(ctx, l, kgo.SeedBrokers(w.o.Observers[l.number]))
}

// readFrom is a session of a reader that is told its partitions, and now and then to go back.
func (w *Workload) readFrom(ctx context.Context, l *lot, where kgo.Opt) error {
	isolation, committed := kgo.ReadUncommitted(), false
	if l.IntN(2) == 0 {
		isolation, committed = kgo.ReadCommitted(), true
	}
	c, err := w.client(ctx, kgo.ConsumePartitions(w.everywhere(kgo.NewOffset().AtStart(), plain, ledger)), kgo.FetchIsolationLevel(isolation), where)
	if err != nil {
		return err
	}
	defer c.Close()
	session := w.session(l)
	w.seeks(session, 0, plain, ledger)
	last := map[string]int64{} // the highest offset seen of each stream's partition 0
	for range 200 + l.IntN(400) {
		if !w.pause(ctx, l) {
			return nil
		}
		w.poll(ctx, c, history.Op{Session: session, Committed: committed}, last)
		if l.IntN(50) == 0 {
			w.goBack(c, l, session, last)
		}
	}
	return nil
}

// poll takes down one poll. Nothing to read is no operation worth it.
func (w *Workload) poll(ctx context.Context, c *kgo.Client, op history.Op, last map[string]int64) []*kgo.Record {
	op.Kind = history.Poll
	op = w.rec.Begin(op)
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	fetches := c.PollRecords(short, 500)
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
			op.Error = fmt.Sprintf("%s/%d: %v", e.Topic, e.Partition, e.Err)
		}
	}
	records := fetches.Records()
	for _, r := range records {
		if last != nil && r.Partition == 0 {
			last[r.Topic] = r.Offset
		}
	}
	op.Reads, op.Outcome = readsOf(records), history.OK
	w.rec.Done(op)
	return records
}

// goBack sets partition 0 of both streams to somewhere before.
func (w *Workload) goBack(c *kgo.Client, l *lot, session string, last map[string]int64) {
	op := w.rec.Begin(history.Op{Session: session, Kind: history.Seek})
	to := map[string]map[int32]kgo.EpochOffset{}
	for stream, offset := range last {
		o := l.Int64N(offset + 1)
		to[stream] = map[int32]kgo.EpochOffset{0: {Epoch: -1, Offset: o}}
		op.Positions = append(op.Positions, history.Position{Partition: history.NewPartition(stream, 0), Offset: o})
	}
	c.SetOffsets(to)
	op.Outcome = history.OK
	w.rec.Done(op)
}

// join is a session of a member of the group: it reads, and commits what it has read.
func (w *Workload) join(ctx context.Context, l *lot) error {
	session := w.session(l)
	moved := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		op := w.rec.Begin(history.Op{Session: session, Kind: history.Seek})
		for stream, list := range partitions {
			for _, p := range list {
				op.Positions = append(op.Positions, history.Position{Partition: history.NewPartition(stream, p), Offset: history.Nowhere})
			}
		}
		op.Outcome = history.OK
		w.rec.Done(op)
	}
	c, err := w.client(ctx, kgo.ConsumerGroup(group), kgo.ConsumeTopics(plain, ledger), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(moved), kgo.OnPartitionsRevoked(moved), kgo.OnPartitionsLost(moved))
	if err != nil {
		return err
	}
	defer c.CloseAllowingRebalance()
	for range 100 + l.IntN(200) {
		if !w.pause(ctx, l) {
			return nil
		}
		if records := w.poll(ctx, c, history.Op{Session: session, Group: group, Committed: true}, nil); len(records) > 0 {
			w.commit(ctx, c, session, records)
		}
		c.AllowRebalance()
	}
	return nil
}

// commit commits what a member has just read.
func (w *Workload) commit(ctx context.Context, c *kgo.Client, session string, records []*kgo.Record) {
	next := map[history.Partition]int64{}
	for _, r := range records {
		next[history.NewPartition(r.Topic, r.Partition)] = r.Offset + 1
	}
	op := history.Op{Session: session, Kind: history.Commit, Group: group}
	for p, o := range next {
		op.Positions = append(op.Positions, history.Position{Partition: p, Offset: o})
	}
	op = w.rec.Begin(op)
	short, cancel := context.WithTimeout(ctx, w.o.Patience)
	defer cancel()
	ended(&op, c.CommitRecords(short, records...))
	w.rec.Done(op)
}
