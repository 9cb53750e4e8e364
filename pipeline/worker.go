package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// WorkerOptions say which part of a pipeline a worker runs, and how.
type WorkerOptions struct {
	// Only are the names of the sources and sinks to run; none is all.
	Only []string
	// Once ends the run when everything that was there at its start has been moved:
	// first the sources, then the sinks up to where these got.
	Once bool
	// Grace is how long a source or sink that is told to stop waits for what is under
	// way; 0 is 5 s.
	Grace time.Duration
	// Patience is how long with Once workers may make no progress with what this one waits
	// for; 0 is 10 min.
	Patience time.Duration
	// StalledAfter is how long nothing may move, although something waits, before a sink
	// that runs is said to be stalled; 0 is a minute.
	StalledAfter time.Duration
	// Log gets what someone should know; nil is silence.
	Log *slog.Logger
}

// Worker runs the sources and sinks of one pipeline. Each runs by itself: one that
// fails or stops leaves the others alone. Run is called once; Status at any time.
type Worker struct {
	pipeline string
	options  WorkerOptions
	sources  []*ingest
	sinks    []*deliver
}

// NewWorker opens the sources and sinks of the file, without waiting for any of them.
func NewWorker(f *File, j *Journal, o WorkerOptions) (*Worker, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	if o.StalledAfter == 0 {
		o.StalledAfter = time.Minute
	}
	w := &Worker{pipeline: f.Pipeline, options: o}
	if err := w.checkNames(f); err != nil {
		return nil, err
	}
	for i := range f.Sources {
		if !w.wants(f.Sources[i].Name) {
			continue
		}
		in, err := newIngest(j, f.Pipeline, &f.Sources[i], o)
		if err != nil {
			return nil, err
		}
		w.sources = append(w.sources, in)
	}
	for i := range f.Sinks {
		if !w.wants(f.Sinks[i].Name) {
			continue
		}
		d, err := newDeliver(j, f, &f.Sinks[i], o)
		if err != nil {
			return nil, err
		}
		w.sinks = append(w.sinks, d)
	}
	return w, nil
}

// checkNames refuses a name that is in no source and no sink.
func (w *Worker) checkNames(f *File) error {
	var known []string
	for i := range f.Sources {
		known = append(known, f.Sources[i].Name)
	}
	for i := range f.Sinks {
		known = append(known, f.Sinks[i].Name)
	}
	for _, name := range w.options.Only {
		if !slices.Contains(known, name) {
			return fmt.Errorf("pipeline %s has no source or sink %q; it has %v", f.Pipeline, name, known)
		}
	}
	return nil
}

func (w *Worker) wants(name string) bool {
	return len(w.options.Only) == 0 || slices.Contains(w.options.Only, name)
}

// Run runs until ctx ends, everything is done (Once) or nothing runs any more. The
// error is nil where all was done, and joins those of the sources and sinks that
// stopped, which the others outlived.
//
// Guarantee 14.
func (w *Worker) Run(ctx context.Context) error {
	errs := make([]error, len(w.sources)+len(w.sinks))
	var sources, sinks sync.WaitGroup
	for i, in := range w.sources {
		sources.Go(func() { errs[i] = in.run(ctx) })
	}
	if w.options.Once {
		sources.Wait()
	}
	for i, d := range w.sinks {
		sinks.Go(func() { errs[len(w.sources)+i] = d.run(ctx) })
	}
	sources.Wait()
	sinks.Wait()
	var stopped []error
	for _, err := range errs {
		if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
			stopped = append(stopped, err)
		}
	}
	if len(stopped) == 0 {
		return ctx.Err()
	}
	return errors.Join(stopped...)
}
