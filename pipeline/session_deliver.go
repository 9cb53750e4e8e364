package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var _ releaser = (*session)(nil)

// deliver implements releaser: it decodes the record, asks `where`, and puts it into
// the batch or aside.
func (s *session) deliver(ctx context.Context, r released) error {
	s.out.taken++
	if r.side != "" {
		if s.within != nil && !s.within(&Delivery{Record: r.record.Record}) {
			return nil
		}
		return s.keepLate(r)
	}
	if r.record.broken != "" {
		return s.keepDead(&r.record.Record, r.record.broken)
	}
	d, err := NewDelivery(r.record.Record, s.d.epoch)
	if err != nil {
		return s.keepDead(&r.record.Record, err.Error())
	}
	if s.repeatsDelete(&d) {
		s.d.count.tombstones.Add(1)
		return nil
	}
	if s.within != nil && !s.within(&d) {
		return nil
	}
	if s.d.where != nil {
		keep, err := s.d.where.Apply(&d)
		if err != nil {
			if err := s.keepDead(&r.record.Record, err.Error()); err != nil || !keep {
				return err
			}
		}
		if !keep {
			s.d.count.filtered.Add(1)
			return nil
		}
	}
	if d.Late = r.late; r.late {
		s.d.count.late.Add(1)
	}
	s.out.add(d)
	if !s.out.full(s.d.entry.Batch) || s.roller != nil && len(s.out.batch) < s.d.entry.Batch.Records {
		return nil
	}
	// Full in the middle of a group, where the mark does not count. What is written may
	// become durable all the same under the last mark, unless the destination holds the
	// cursor: then what it shows and the cursor must agree.
	if s.resumer || s.roller != nil {
		return s.write(ctx)
	}
	if _, exact := s.seq.(*unordered); exact {
		return nil // a boundary follows
	}
	return s.flushTo(ctx, s.durable)
}

// repeatsDelete reports whether the delivery is the tombstone that Debezium appends
// behind a delete of the same key: it says nothing new, and not of which table.
func (s *session) repeatsDelete(d *Delivery) bool {
	p := d.partition()
	key, deleted := s.deleted[p]
	repeats := deleted && d.Value == nil && string(d.Key) == key
	if d.Op == OpDelete && d.Value != nil && d.partial {
		s.deleted[p] = string(d.Key)
	} else if deleted {
		delete(s.deleted, p)
	}
	return repeats
}

// boundary implements releaser: output may be cut here.
func (s *session) boundary(ctx context.Context, stamp int64) error {
	if s.roller == nil {
		if s.out.full(s.d.entry.Batch) {
			return s.flush(ctx)
		}
		return nil
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	if s.roller.Due(stamp) {
		return s.flush(ctx)
	}
	if s.out.asideBytes >= maxAside {
		return s.appendAside(ctx)
	}
	return nil
}

// keepDead puts a record among the dead letters.
func (s *session) keepDead(r *Record, reason string) error {
	n := s.d.count.dead.Add(1)
	if time.Since(s.d.saidDead) > time.Minute {
		s.d.saidDead = time.Now()
		s.d.log.Warn("a record can't be delivered and is kept in the dead-letter stream", "record", fmt.Sprintf("%s/%d@%d", r.Stream, r.Partition, r.Offset),
			"reason", reason, "kept in", DeadStream(s.d.pipeline, s.d.asideName), "so far", n)
	}
	s.out.keepAside(aside(DeadStream(s.d.pipeline, s.d.asideName), s.d.entry.Name, reason, r))
	return nil
}

// keepLate puts a record among the late ones.
func (s *session) keepLate(r released) error {
	s.d.count.late.Add(1)
	reason := fmt.Sprintf("late by %s: its time had been released", time.Duration(r.lateness)*time.Microsecond)
	if r.side != "late" {
		reason = "its time is implausible: " + time.UnixMicro(r.record.Time).UTC().Format(time.RFC3339Nano)
	}
	s.out.keepAside(aside(LateStream(s.d.pipeline, s.d.asideName), s.d.entry.Name, reason, &r.record.Record, lateHeaders(r)...))
	return nil
}

// write hands the batch to the sink.
func (s *session) write(ctx context.Context) error {
	if len(s.out.batch) == 0 {
		return nil
	}
	if err := s.calling(func() error { return s.sink.Write(ctx, s.out.batch) }); err != nil {
		return fmt.Errorf("writing to the sink: %w", err)
	}
	last := &s.out.batch[len(s.out.batch)-1]
	s.d.count.stamp.Store(last.Stamp)
	clear(s.out.batch)
	s.out.batch = s.out.batch[:0]
	return nil
}

// calling calls the destination, and lets others see that it has not answered.
func (s *session) calling(f func() error) error {
	s.d.count.calling.Store(time.Now().UnixNano())
	defer s.d.count.calling.Store(0)
	return f()
}

// appendAside makes dead letters and late records durable; the journal may be down for
// a while.
func (s *session) appendAside(ctx context.Context) error {
	if len(s.out.aside) == 0 {
		return nil
	}
	err := s.d.untilDone(ctx, func() error { return s.d.journal.keepAside(ctx, s.out.aside) })
	if err != nil {
		return err
	}
	s.out.aside, s.out.asideBytes = nil, 0
	return nil
}

// keepAside appends records to streams beside a sink, which it makes where missing.
func (j *Journal) keepAside(ctx context.Context, records []*kgo.Record) error {
	for _, k := range records {
		if err := j.ensureOwn(ctx, k.Topic, keepAside); err != nil {
			return err
		}
	}
	if err := j.append(ctx, records...); err != nil {
		return fmt.Errorf("keeping dead letters and late records: %w", err)
	}
	return nil
}

// untilDone calls f until it returns nil or ctx ends.
func (d *deliver) untilDone(ctx context.Context, f func() error) error {
	var wait backoff
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.retrying(err)
		if wait.next(ctx) != nil {
			return ctx.Err()
		}
	}
}
