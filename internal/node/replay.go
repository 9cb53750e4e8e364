package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// ReplayOptions are those of `daybook replay`.
type ReplayOptions struct {
	File  string
	Sink  string
	From  string
	To    string
	Into  string
	Epoch int
	Out   io.Writer
	Log   *slog.Logger
}

// intoLive is the --into that means the sink's own target.
const intoLive = "live"

// Replay delivers a stretch of a journal to a sink once more, and returns when all of it is
// durable at the target. It works beside a running worker and without one.
func Replay(ctx context.Context, o ReplayOptions) (err error) {
	f, err := Load(o.File)
	if err != nil {
		return err
	}
	if o.Into == "" {
		return fmt.Errorf("%w: --into names no target: a shadow (an index, key prefix or folder) or live", ErrConfig)
	}
	if o.Epoch < 0 || o.Epoch > pipeline.MaxEpoch {
		return fmt.Errorf("%w: --epoch %d: want 0 to %d", ErrConfig, o.Epoch, pipeline.MaxEpoch)
	}
	streams, err := streamsOf(f, o.Sink)
	if err != nil {
		return err
	}
	j, done, err := beside(ctx, f.Journal, o.Log)
	if err != nil {
		return err
	}
	defer closing(done, &err)
	from, err := bound(ctx, j, "--from", o.From, streams)
	if err != nil {
		return err
	}
	to := pipeline.Bound{}
	if o.To != "" {
		if to, err = bound(ctx, j, "--to", o.To, streams); err != nil {
			return err
		}
	}
	into := o.Into
	if into == intoLive {
		into = ""
	}
	show := progressPrinter{out: o.Out}
	r, err := pipeline.NewReplay(f, j, pipeline.ReplayOptions{
		Sink: o.Sink, From: from, To: to, Into: into, Epoch: uint16(o.Epoch), Progress: show.print, Log: o.Log,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r.Run(ctx)
}

func streamsOf(f *pipeline.File, sink string) ([]string, error) {
	var names []string
	for i := range f.Sinks {
		if f.Sinks[i].Name == sink {
			return f.Sinks[i].Streams, nil
		}
		names = append(names, f.Sinks[i].Name)
	}
	return nil, fmt.Errorf("%w: --sink %s: the pipeline %s has no sink of that name, only %v", ErrConfig, sink, f.Pipeline, names)
}

// bound reads one end of the stretch. Times stay times: what they mean depends on each
// record's event time.
func bound(ctx context.Context, j *pipeline.Journal, flag, text string, streams []string) (pipeline.Bound, error) {
	p, err := pipeline.ParsePlace(text)
	if err != nil {
		return pipeline.Bound{}, fmt.Errorf("%w: %s: %w", ErrConfig, flag, err)
	}
	if !p.Time.IsZero() {
		return pipeline.Bound{Time: p.Time}, nil
	}
	offsets, err := j.Resolve(ctx, p, streams...)
	if err != nil {
		return pipeline.Bound{}, fmt.Errorf("%s: %w", flag, err)
	}
	return pipeline.Bound{Offsets: offsets}, nil
}

// progressPrinter prints how far a replay is, at most every few seconds, and how it ended.
type progressPrinter struct {
	out  io.Writer
	last time.Time
}

func (p *progressPrinter) print(now pipeline.ReplayProgress) {
	end := now.State == pipeline.StateDone
	if !end && time.Since(p.last) < 3*time.Second {
		return
	}
	p.last = time.Now()
	percent := 100.0
	if now.Total > 0 {
		percent = 100 * float64(now.Done) / float64(now.Total)
	}
	left := "-"
	if now.Left > 0 {
		left = now.Left.Round(time.Second).String()
	}
	fmt.Fprintf(p.out, "%s: %d of %d offsets (%.0f %%), %d records delivered, %d dead letters, %d late, %s gone, %s left\n",
		now.State, now.Done, now.Total, percent, now.Delivered, now.DeadLetters, now.Late, now.Elapsed.Round(100*time.Millisecond), left)
}
