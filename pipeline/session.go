package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// session delivers some partitions of a sink's streams, from opening the destination
// until it is told to stop, is done or fails. All of it happens in one goroutine.
type session struct {
	d       *deliver
	owner   owner
	streams map[string]StreamInfo
	parts   []Partition

	sink    Sink
	roller  Roller // the sink, where it says itself when to flush
	resumer bool

	reader *reader
	seq    sequencer
	book   *frontierBook // nil where silence means nothing to the sink

	out  outbox
	once bool // read to the ends there were at the start
	over bool // what is read is all there will ever be: a replay
	// within says whether a replay wants the record; nil is all.
	within func(*Delivery) bool
	// changes says that the order is one for changes of databases.
	changes bool
	// whole says that the sequencer was released up to here, so that its mark counts.
	whole bool
	// flushing is the mark of a flush that was tried and failed; it is tried again
	// before anything else is written.
	flushing   *mark
	durable    mark // the last mark that a flush made true
	moved      bool // durable is not committed
	commitAt   time.Time
	quietAt    time.Time
	measuredAt time.Time
	deleted    map[Partition]string // key of the delete just before, see repeatsDelete
	askedAt    map[string]time.Time // by stream, see advanceByTime
}

// commitEvery is how often a cursor is committed; what was delivered since is delivered
// again after a crash, which sinks are made for.
const commitEvery = 500 * time.Millisecond

// run delivers. On return the destination is closed.
func (s *session) run(ctx context.Context) (err error) {
	defer func() {
		s.reader.close()
		err = errors.Join(err, s.sink.Close())
	}()
	s.d.condition.set(StateRunning, nil)
	s.commitAt = time.Now()
	for {
		if err := s.step(ctx); err != nil {
			return errors.Join(err, s.stop(ctx))
		}
		if s.once && s.reader.done() {
			return s.finish(ctx)
		}
	}
}

// step reads, orders, hands over and flushes what is due.
func (s *session) step(ctx context.Context) error {
	if void := s.d.void.Load(); void != nil {
		return *void
	}
	n := 0
	if !s.reader.done() || !s.once {
		wait, cancel := context.WithTimeout(ctx, s.out.wait(s.d.entry.Batch.Time))
		var err error
		n, err = s.reader.poll(wait, s.take, s.passOver)
		cancel()
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.balance()
	s.advance(ctx, n == 0)
	s.whole = false
	if err := s.seq.release(ctx, s); err != nil {
		return err
	}
	s.whole = true
	s.measure()
	if s.roller == nil && s.out.due(s.d.entry.Batch) || s.roller == nil && s.progressDue() {
		return s.flush(ctx)
	}
	if s.moved && time.Since(s.commitAt) > commitEvery || time.Since(s.commitAt) > refreshEvery {
		s.moved = true
		return s.commit(ctx)
	}
	return nil
}

// passOver notes offsets that hold nothing for anybody (the end of a transaction): the
// mark is to pass them too, or an idle sink would look behind for ever.
func (s *session) passOver(p Partition, next int64) {
	s.out.taken++
	s.seq.passed(p, next)
}

// take hands a record to the sequencer.
func (s *session) take(r *incoming) error {
	s.d.count.in.Add(1)
	if r.foreign && !r.appendTime && s.d.entry.Order != nil {
		return &StopError{
			Code: "no-append-stamp", Where: fmt.Sprintf("%s/%d@%d", r.Stream, r.Partition, r.Offset),
			Err: errors.New("the record has neither a stamp of Daybook nor a timestamp of the journal, so its place in the order can't be told"),
			Fix: "set message.timestamp.type=LogAppendTime on the stream, or leave `order` out",
		}
	}
	if r.Table != "" && s.d.entry.Order != nil && !s.changes {
		s.d.changes[r.Stream] = true
		return errOrderChanges
	}
	return s.seq.push(r)
}

// errOrderChanges starts the session anew, with the order that changes need.
var errOrderChanges = errors.New("the stream turns out to hold changes of a database: ordering it by source")

func compareText(a, b string) int { return strings.Compare(a, b) }
