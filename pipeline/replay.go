package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"
)

// ReplayOptions say what is replayed, and to where.
type ReplayOptions struct {
	// Sink is the name of the sink in the file.
	Sink string
	// From and To bound the stretch: From belongs to it, To does not. Times are event
	// times. Without From it begins with the oldest record kept, without To it ends with
	// what is there at the start.
	From, To Bound
	// Into names the shadow that is written in place of the sink's live target (see
	// SinkConfig.Into). Empty is the live target itself.
	Into string
	// Epoch is the replay epoch of a shadow, 0 to MaxEpoch.
	Epoch uint16
	// Progress, if set, is called about once a second and at the end.
	Progress func(ReplayProgress)
	// Log gets what someone should know; nil is silence.
	Log *slog.Logger
}

// ReplayProgress says how far a replay is.
type ReplayProgress struct {
	// Done and Total count offsets of the journal, Delivered records at the destination.
	Done, Total, Delivered int64
	DeadLetters, Late      int64
	Elapsed                time.Duration
	// Left is about how long it will take; zero where that can't be told yet.
	Left time.Duration
	Condition
}

// Replay sends a stretch of history to a sink once more. It keeps no cursor: one that
// was interrupted is run again from its beginning, which a destination with versions
// does not notice. Where the destination itself holds the cursor (files), what an
// interrupted replay left must be deleted first.
type Replay struct {
	deliver *deliver
	options ReplayOptions
}

// NewReplay checks the options against the rules:
//
//   - Into the live target only with the epoch of the live sink, 0, and up to the present
//     end, so that later changes and deletes are applied again and nothing old stays.
//   - A destination that holds the cursor takes no replay into its live target: it would
//     hold every record twice.
//
// Anything else goes into a shadow. NewReplay changes the sink's section of f.
//
// Guarantee 15.
func NewReplay(f *File, j *Journal, o ReplayOptions) (*Replay, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	entry, err := f.sink(o.Sink)
	if err != nil {
		return nil, err
	}
	if o.Epoch > MaxEpoch {
		return nil, fmt.Errorf("epoch %d: at most %d", o.Epoch, MaxEpoch)
	}
	if !o.From.Time.IsZero() && !o.To.Time.IsZero() && !o.From.Time.Before(o.To.Time) {
		return nil, fmt.Errorf("nothing lies between %s and %s: the end must be after the beginning", o.From.Time.Format(time.RFC3339Nano), o.To.Time.Format(time.RFC3339Nano))
	}
	for _, p := range sortedPartitions(o.To.Offsets) {
		if from, both := o.From.Offsets[p]; both && o.To.Offsets[p] < from {
			return nil, fmt.Errorf("the stretch of %s ends at %d, before it begins at %d", p, o.To.Offsets[p], from)
		}
	}
	if o.Into == "" {
		if o.Epoch != 0 {
			return nil, errors.New("another epoch than the live one goes into a shadow: give --into")
		}
		if !o.To.IsZero() {
			return nil, errors.New("a stretch that ends before the present goes into a shadow, because in the live target it would bring back what was changed or deleted since: give --into, or leave --to out")
		}
	} else if err := entry.Config.Into(o.Into); err != nil {
		return nil, fmt.Errorf("sink %s: into %s: %w", o.Sink, o.Into, err)
	}
	d, err := newDeliver(j, f, entry, WorkerOptions{Once: true, Log: o.Log, Grace: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	d.epoch, d.asideName = o.Epoch, entry.Name+".replay"
	return &Replay{deliver: d, options: o}, nil
}

// sink returns the entry of that name.
func (f *File) sink(name string) (*SinkEntry, error) {
	var names []string
	for i := range f.Sinks {
		if f.Sinks[i].Name == name {
			return &f.Sinks[i], nil
		}
		names = append(names, f.Sinks[i].Name)
	}
	return nil, fmt.Errorf("pipeline %s has no sink %q; it has %v", f.Pipeline, name, names)
}

// Run replays, and returns nil when all is durable at the destination.
func (r *Replay) Run(ctx context.Context) error {
	d := r.deliver
	streams, err := d.awaitStreams(ctx)
	if err != nil {
		return err
	}
	parts := partitionsOf(streams)
	from, to, err := r.stretch(ctx, parts)
	if err != nil {
		return err
	}
	s, err := newReplaySession(ctx, d, streams, parts, from, to)
	if err != nil {
		return err
	}
	s.within = r.within()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(watched)
		for r.options.Progress != nil && pause(watching, time.Second) == nil {
			r.options.Progress(r.progress(from, to, began))
		}
	}()
	err = s.run(ctx)
	stop()
	<-watched
	if err == nil {
		d.condition.set(StateDone, nil)
	}
	if r.options.Progress != nil {
		r.options.Progress(r.progress(from, to, began))
	}
	return err
}

// stretch returns the offsets that hold the stretch.
func (r *Replay) stretch(ctx context.Context, parts []Partition) (from, to map[Partition]int64, err error) {
	j, streams := r.deliver.journal, r.deliver.entry.Streams
	if err := errors.Join(r.options.From.covers(parts), r.options.To.covers(parts)); err != nil {
		return nil, nil, err
	}
	starts, err := j.Starts(ctx, streams...)
	if err != nil {
		return nil, nil, err
	}
	ends, err := j.CommittedEnds(ctx, streams...)
	if err != nil {
		return nil, nil, err
	}
	from, to = maps.Clone(starts), maps.Clone(ends)
	switch b := r.options.From; {
	case b.Offsets != nil:
		from = maps.Clone(b.Offsets)
	case !b.Time.IsZero():
		if from, err = j.FirstAfter(ctx, b.Time, streams...); err != nil {
			return nil, nil, err
		}
		for p := range from {
			if from[p] < 0 {
				from[p] = ends[p]
			}
		}
	}
	// A time ends nothing here: what follows may still belong to the stretch, however late
	// it was appended (a worker that was down, logs from before).
	if b := r.options.To; b.Offsets != nil {
		to = maps.Clone(b.Offsets)
	}
	for p := range to {
		to[p] = max(min(to[p], ends[p]), from[p])
	}
	return from, to, r.checkStart(from, starts, ends)
}

// checkStart refuses offsets that the journal does not have, and says where history
// does not reach back as far as asked.
func (r *Replay) checkStart(from, starts, ends map[Partition]int64) error {
	for _, p := range sortedPartitions(from) {
		switch o := from[p]; {
		case o < starts[p]:
			return &StopError{
				Code: "journal-gap", Where: fmt.Sprintf("%s@%d", p, o), Err: fmt.Errorf("records below %d have expired", starts[p]),
				Fix: fmt.Sprintf("begin at %s@%d or later", p, starts[p]),
			}
		case o > ends[p]:
			return fmt.Errorf("position %s@%d lies behind the end of the partition (%d)", p, o, ends[p])
		case o == starts[p] && o > 0 && !r.options.From.Time.IsZero():
			r.deliver.log.Warn("the journal may not reach back to the time asked for: older records have expired", "partition", p.String(), "oldest", o)
		}
	}
	return nil
}

// within returns the condition on the event time, nil where there is none.
func (r *Replay) within() func(*Delivery) bool {
	from, to := r.options.From.Time, r.options.To.Time
	if from.IsZero() && to.IsZero() {
		return nil
	}
	return func(d *Delivery) bool {
		return (from.IsZero() || d.Time >= from.UnixMicro()) && (to.IsZero() || d.Time < to.UnixMicro())
	}
}

func (r *Replay) progress(from, to map[Partition]int64, began time.Time) ReplayProgress {
	c := &r.deliver.count
	p := ReplayProgress{
		Delivered: c.out.Load(), DeadLetters: c.dead.Load(), Late: c.late.Load(),
		Elapsed: time.Since(began), Condition: r.deliver.condition.get(),
	}
	at := r.deliver.cursor.Load()
	for part, end := range to {
		p.Total += end - from[part]
		if at != nil {
			p.Done += min((*at)[part], end) - from[part]
		}
	}
	if p.Done > 0 {
		p.Left = time.Duration(float64(p.Elapsed) / float64(p.Done) * float64(p.Total-p.Done))
	}
	return p
}
