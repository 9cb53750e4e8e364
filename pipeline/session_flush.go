package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// mark is where the sink can go on when all that was released is durable.
func (s *session) mark() (mark, error) {
	m, err := s.seq.mark()
	for p, o := range m.offsets {
		epoch := s.durable.epochOf(p)
		if part := s.reader.parts[p]; part != nil {
			epoch = part.epochs.before(o, epoch)
		}
		m.noteEpoch(p, epoch)
	}
	return m, err
}

// flush makes all that was released durable, and moves the mark there.
func (s *session) flush(ctx context.Context) error {
	m, err := s.mark()
	if err != nil {
		return fmt.Errorf("taking a checkpoint: %w", err)
	}
	return s.flushTo(ctx, m)
}

// flushTo makes all that was written durable under the given mark. It tries until it
// succeeds, the sink stops or ctx ends; meanwhile nothing is read, so that a sink that
// is down costs no memory.
//
// Guarantee 10.
func (s *session) flushTo(ctx context.Context, m mark) error {
	if err := s.write(ctx); err != nil {
		return err
	}
	// Before the sink's flush: a destination that holds the cursor moves it with that.
	if err := s.appendAside(ctx); err != nil {
		return err
	}
	s.flushing = &m
	var wait backoff
	for {
		err := s.tryFlush(ctx, m)
		if err == nil {
			return s.commitDue(ctx)
		}
		var stop *StopError
		if errors.As(err, &stop) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.d.retrying(err)
		if wait.next(ctx) != nil {
			return ctx.Err()
		}
	}
}

// maxRejections is how often in a row a flush may name records that the destination
// refuses: once is usual, and a sink that names them for ever is broken.
const maxRejections = 1000

// tryFlush flushes once, and again where the destination refused records: those are
// dead letters first, so that the cursor does not pass them before they are safe.
func (s *session) tryFlush(ctx context.Context, m mark) error {
	for range maxRejections {
		err := s.calling(func() error { return s.sink.Flush(ctx, m.checkpoint()) })
		var rejected *RejectedError
		if errors.As(err, &rejected) {
			for i := range rejected.Rejected {
				r := &rejected.Rejected[i]
				if err := s.keepDead(&r.Delivery.Record, r.Reason); err != nil {
					return err
				}
			}
			s.out.records -= len(rejected.Rejected)
			if err := s.appendAside(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.flushed(m)
		return nil
	}
	return &StopError{
		Code: "sink-rejects-for-ever", Where: "sink " + s.d.entry.Name,
		Err: errors.New("the sink names refused records at every flush"), Fix: "this is a fault in the sink: report it",
	}
}

func (s *session) flushed(m mark) {
	s.flushing = nil
	s.d.count.out.Add(int64(max(s.out.records, 0)))
	s.d.count.bytes.Add(s.out.bytes)
	s.d.count.batches.Add(1)
	s.out.flushed()
	s.durable, s.moved = m, true
	s.d.cursor.Store(&m.offsets)
	s.quietAt = time.Now()
	s.d.condition.set(StateRunning, nil)
}

// progressDue reports whether the mark should move although nothing was delivered: all
// that was read was filtered or kept aside.
func (s *session) progressDue() bool {
	return s.out.records == 0 && s.out.taken > 0 && time.Since(s.quietAt) > 2*commitEvery
}

func (s *session) commitDue(ctx context.Context) error {
	if time.Since(s.commitAt) < commitEvery {
		return nil
	}
	return s.commit(ctx)
}

// commit stores the durable mark as the sink's cursor.
func (s *session) commit(ctx context.Context) error {
	if !s.moved {
		return nil
	}
	if err := s.owner.commit(ctx, s.durable.cursors(s.streams)); err != nil {
		return err
	}
	s.moved, s.commitAt = false, time.Now()
	return nil
}

// finish ends a bounded run: everything goes out.
func (s *session) finish(ctx context.Context) error {
	if err := s.seq.finish(ctx, s.over, s); err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	s.whole = true
	if err := s.flush(ctx); err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	s.measure()
	_ = s.d.measureOnce(ctx) // a number for people
	return s.d.untilDone(ctx, func() error { return s.commit(ctx) })
}

// stop ends a session that was told to, or failed. Nothing that the reorderer holds
// goes out, and a sink that cuts its output itself is not made to cut it here; but what
// others have been given is made durable, if that goes quickly.
func (s *session) stop(ctx context.Context) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.d.options.Grace)
	defer cancel()
	if ctx.Err() != nil && s.roller == nil {
		if err := s.lastFlush(grace); err != nil {
			s.d.log.Info("stopping with records that are not delivered yet; they will be after the next start", "reason", err.Error())
		}
	}
	if err := s.commit(grace); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *session) lastFlush(ctx context.Context) error {
	if s.flushing != nil {
		return s.tryFlush(ctx, *s.flushing)
	}
	if !s.whole || s.out.taken == 0 {
		return nil
	}
	m, err := s.mark()
	if err != nil {
		return err
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	if len(s.out.aside) > 0 {
		if err := s.d.journal.keepAside(ctx, s.out.aside); err != nil {
			return err
		}
		s.out.aside = nil
	}
	return s.tryFlush(ctx, m)
}
