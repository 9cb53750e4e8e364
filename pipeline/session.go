package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

// newSession opens the destination and finds out where to go on.
func newSession(ctx context.Context, d *deliver, o owner, streams map[string]StreamInfo, parts []Partition) (_ *session, err error) {
	s := &session{d: d, owner: o, streams: streams, parts: parts, once: d.options.Once, deleted: map[Partition]string{}, askedAt: map[string]time.Time{}}
	group := sinkGroup(d.pipeline, d.entry.Name)
	held, err := d.journal.loadCursors(ctx, group, d.entry.Streams...)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(held, func(p Partition, _ cursor) bool { return !s.owns(p) })
	from, err := markFrom(held, streams, group)
	if err != nil {
		return nil, err
	}
	if err := s.openSink(from); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.sink.Close())
		}
	}()
	if from, err = s.resume(ctx, from); err != nil {
		return nil, err
	}
	return s, s.start(ctx, from, group)
}

func (s *session) owns(p Partition) bool {
	for _, own := range s.parts {
		if own == p {
			return true
		}
	}
	return false
}

func (s *session) openSink(from mark) error {
	env := SinkEnv{
		Pipeline: s.d.pipeline, Name: s.d.entry.Name, Streams: streamIDs(s.streams), Epoch: s.d.epoch, Log: s.d.log,
		Highest: func(ctx context.Context) (int64, error) { return s.d.journal.highest(ctx, s.streams) },
	}
	if len(from.offsets) > 0 {
		env.Cursor = maps.Clone(from.offsets)
	}
	sink, err := s.d.entry.Config.OpenSink(env)
	if err != nil {
		return fmt.Errorf("opening sink %s: %w", s.d.entry.Name, err)
	}
	s.sink = sink
	s.roller, _ = sink.(Roller)
	s.d.opened.Store(&sink)
	return nil
}

// resume asks a destination that holds the cursor for it; it goes before the one that
// the journal holds.
func (s *session) resume(ctx context.Context, from mark) (mark, error) {
	r, ok := s.sink.(Resumer)
	if !ok {
		return from, nil
	}
	s.resumer = true
	c, ok, err := r.Resume(ctx)
	if err != nil {
		return mark{}, fmt.Errorf("asking the destination for its cursor: %w", err)
	}
	if !ok {
		if len(from.offsets) > 0 {
			s.d.log.Warn("the destination holds no cursor although the sink has run before: it starts at the oldest record kept")
		}
		return mark{}, nil
	}
	m, err := markOf(c)
	if err != nil {
		return mark{}, err
	}
	maps.DeleteFunc(m.offsets, func(p Partition, _ int64) bool { return !s.owns(p) })
	return m, nil
}

// start begins to read at the mark, and at the oldest record where it says nothing.
func (s *session) start(ctx context.Context, from mark, group string) error {
	d := s.d
	starts, err := d.journal.Starts(ctx, d.entry.Streams...)
	if err != nil {
		return err
	}
	at, read := map[Partition]int64{}, map[Partition]int64{}
	for _, p := range s.parts {
		o, ok := from.offsets[p]
		if !ok {
			o = starts[p]
		}
		at[p], read[p] = o, o
		for _, state := range from.states {
			if read[p], err = startOf(state, p, read[p]); err != nil {
				return err
			}
		}
	}
	if err := d.journal.checkRange(ctx, group, read, d.entry.Streams...); err != nil {
		return err
	}
	if s.seq, err = s.newSequencer(ctx, at, from.states); err != nil {
		return err
	}
	var ends map[Partition]int64
	if s.once {
		if ends, err = d.journal.CommittedEnds(ctx, d.entry.Streams...); err != nil {
			return err
		}
	}
	s.durable = mark{offsets: at, states: from.states}
	d.cursor.Store(&at)
	return s.startReader(ctx, read, ends)
}

func (s *session) newSequencer(ctx context.Context, at map[Partition]int64, states map[Partition][]byte) (sequencer, error) {
	o := s.d.entry.Order
	if o == nil {
		return newUnordered(at), nil
	}
	changes, err := s.d.ordersChanges(ctx, s.parts)
	if err != nil {
		return nil, err
	}
	if err := s.d.checkOrder(changes); err != nil {
		return nil, err
	}
	s.changes = changes
	options := orderOptions(o, changes)
	if o.Per == "partition" {
		return newPerPartition(options, at, states)
	}
	var state []byte
	for _, b := range states {
		state = b
	}
	return newOrdered(options, s.parts, at, state)
}

func (s *session) startReader(ctx context.Context, from, ends map[Partition]int64) error {
	var frontiers map[int32]int64
	if !s.once && (s.d.entry.Order != nil || s.roller != nil) {
		infos := make([]StreamInfo, 0, len(s.streams))
		for _, info := range s.streams {
			infos = append(infos, info)
		}
		s.book = newFrontierBook(infos)
		known, err := s.d.journal.Ends(ctx, FrontierStream)
		if err != nil {
			return err
		}
		oldest, err := s.d.journal.Starts(ctx, FrontierStream)
		if err != nil {
			return err
		}
		p := Partition{Stream: FrontierStream}
		frontiers = map[int32]int64{0: max(oldest[p], known[p]-recentFrontiers)}
	}
	r, err := newReader(s.d.journal, from, ends, frontiers)
	if err != nil {
		return err
	}
	if s.book != nil {
		r.onFrontier = func(k *kgo.Record) {
			if f, ok := parseFrontier(k); ok {
				s.book.note(f, time.Now())
			}
		}
	}
	s.reader = r
	return nil
}

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
