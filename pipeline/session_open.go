package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
	starts, err := d.journal.Starts(ctx, d.entry.Streams...)
	if err != nil {
		return nil, err
	}
	if err := d.countKept(ctx); err != nil {
		return nil, err
	}
	// Before the destination is opened: that may take for ever, and others want to see how
	// far the sink is behind.
	at := s.places(from, starts)
	d.cursor.Store(&at)
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
	return s, s.start(ctx, from, starts, group)
}

func (s *session) owns(p Partition) bool {
	for _, own := range s.parts {
		if own == p {
			return true
		}
	}
	return false
}

// places are the offsets of the mark, and the oldest ones where it says nothing.
func (s *session) places(from mark, starts map[Partition]int64) map[Partition]int64 {
	at := map[Partition]int64{}
	for _, p := range s.parts {
		at[p] = starts[p]
		if o, ok := from.offsets[p]; ok {
			at[p] = o
		}
	}
	return at
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
	// A partition that the destination does not know was another worker's before.
	for p := range from.offsets {
		if _, known := m.offsets[p]; !known {
			m.adopt(p, from)
		}
	}
	return m, nil
}

// start begins to read at the mark, and at the oldest record where it says nothing.
func (s *session) start(ctx context.Context, from mark, starts map[Partition]int64, group string) (err error) {
	d, at := s.d, s.places(from, starts)
	read := maps.Clone(at)
	for _, p := range s.parts {
		for _, state := range from.states {
			if read[p], err = startOf(state, p, read[p]); err != nil {
				return err
			}
		}
	}
	if err := d.journal.checkRange(ctx, group, read, d.entry.Streams...); err != nil {
		return err
	}
	if err := d.journal.checkHistory(ctx, group, from); err != nil {
		return err
	}
	if s.seq, err = s.newSequencer(ctx, at, from.states); err != nil {
		return err
	}
	var ends map[Partition]int64
	if s.once {
		ends = map[Partition]int64{}
		for _, p := range s.parts {
			ends[p] = d.goal.ends[p] // 0 for one that was not there then
		}
	}
	s.durable = mark{offsets: at, epochs: from.epochs, states: from.states}
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
