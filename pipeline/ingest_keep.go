package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// keep writes frontiers and checkpoints until ctx ends, and sees from them whether the
// journal answers.
func (in *ingest) keep(ctx context.Context, r *sourceRun) {
	every := firstKeep
	tick := time.NewTimer(every)
	defer tick.Stop()
	began, emits, silent := time.Now(), in.count.emits.Load(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		every = min(2*every, keepEvery)
		tick.Reset(every)
		// A write that fails leaves the checkpoint older than it might be, which costs a
		// longer tail and nothing else. But a journal that does not answer is a source
		// that does not run, whatever the source itself thinks.
		limited, cancel := context.WithTimeout(ctx, 10*keepEvery)
		err := in.keepOnce(limited, r, false)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			silent = true
			in.condition.set(StateRetrying, fmt.Errorf("the journal does not answer: %w", err))
		case silent || in.count.emits.Load() > emits || time.Since(began) > settleTime:
			silent = false
			in.condition.set(StateRunning, nil)
		}
	}
}

// refreshEvery is how often a checkpoint is written that has not moved: Kafka forgets
// offsets that nobody has committed for a week.
const refreshEvery = time.Hour

// keepOnce writes one frontier, and the checkpoint where it has moved.
func (in *ingest) keepOnce(ctx context.Context, r *sourceRun, closed bool) error {
	in.moveIdleEnds(ctx, r)
	promise, err := r.emitter.promise(ctx)
	if err != nil {
		return err
	}
	durable := r.flight.durablePrefix()
	ends := make([]int64, r.stream.Partitions)
	for p, end := range durable.reached {
		ends[p] = end
	}
	frontierErr := in.journal.appendFrontier(ctx, frontier{
		Pipeline: in.pipeline, Source: in.entry.Name, Stream: r.stream.Name, StreamID: r.stream.ID,
		Stamp: promise.stamp, Ends: ends, Closed: closed,
	})
	c := sourceCheckpoint{StreamID: r.stream.ID, Position: durable.resume, Ends: durable.ends, Stamp: promise.stamp, Pending: promise.pending.ids}
	for p, o := range promise.pending.floor {
		c.Ends[p] = min(c.Ends[p], o)
	}
	moved := c.Position != r.saved.Position || !maps.Equal(c.Ends, r.saved.Ends) || len(c.Pending) != len(r.saved.Pending)
	if !moved && time.Since(r.savedAt) < refreshEvery {
		return frontierErr
	}
	return errors.Join(frontierErr, in.save(ctx, r, c))
}

// moveIdleEnds moves the ends on while the source is silent and others append to the
// stream, so that the tail that a restart reads stays short.
func (in *ingest) moveIdleEnds(ctx context.Context, r *sourceRun) {
	before := r.flight.opened()
	if !r.flight.idle() {
		return
	}
	ends, err := in.journal.Ends(ctx, r.stream.Name)
	if err != nil {
		return
	}
	r.flight.advance(before, ofStream(ends, r.stream.Name))
}

// save stores a checkpoint, unless the journal has lost since the last one what lies before that: then the source stops.
// Leaders only change the history of a journal that lost its majority, so it is looked at where they changed.
func (in *ingest) save(ctx context.Context, r *sourceRun, c sourceCheckpoint) (err error) {
	// After all below the ends was acknowledged, so that none of it is of a later epoch.
	if c.Epochs, err = in.journal.epochs(ctx, r.stream.Name); err != nil {
		return err
	}
	same := func(p, epoch int32) bool { now, ok := c.Epochs[p]; return ok && now == epoch }
	if err := in.checkHistory(ctx, &r.saved, r.stream.Name, same); err != nil {
		var stop *StopError
		if errors.As(err, &stop) {
			r.cancel(err)
		}
		return err
	}
	if err := in.journal.saveSource(ctx, r.group, r.stream.Name, c); err != nil {
		return err
	}
	r.saved, r.savedAt = c, time.Now()
	if c.Position != "" && r.anchor != nil {
		close(r.anchor)
		r.anchor = nil
	}
	in.mu.Lock()
	in.last = c
	in.mu.Unlock()
	return nil
}
