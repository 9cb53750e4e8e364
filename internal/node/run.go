package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/admin"
	"github.com/daybook-data/daybook/pipeline"
)

// RunOptions are those of `daybook run`.
type RunOptions struct {
	Files   []string
	Only    []string
	Once    bool
	HTTP    string
	Log     *slog.Logger
	Version string
}

// Run runs the pipelines of the files until ctx ends, which is no error, or, with Once,
// until what was there has been moved. A source or sink that stops leaves the others
// running; the error then names it when the rest is done.
func Run(ctx context.Context, o RunOptions) (err error) {
	files, err := loadAll(o.Files)
	if err != nil {
		return err
	}
	if err := checkOnly(files, o.Only); err != nil {
		return err
	}
	all := newStores(o.Log)
	defer closing(all.close, &err)
	r := &running{options: o}
	defer r.close()
	for _, f := range files {
		if err := r.add(ctx, f, files, all); err != nil {
			return err
		}
	}
	return r.run(ctx, all)
}

// loadAll loads every file, so that all problems are told at once.
func loadAll(paths []string) ([]*pipeline.File, error) {
	var files []*pipeline.File
	var errs []error
	names := map[string]string{}
	for _, path := range paths {
		f, err := Load(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, taken := names[f.Pipeline]; taken {
			errs = append(errs, fmt.Errorf("%w: %s and %s both describe the pipeline %q", ErrConfig, other, path, f.Pipeline))
		}
		names[f.Pipeline] = path
		files = append(files, f)
	}
	return files, errors.Join(errs...)
}

// namesOf returns the names of a file's sources and sinks.
func namesOf(f *pipeline.File) []string {
	var names []string
	for _, s := range f.Sources {
		names = append(names, s.Name)
	}
	for _, s := range f.Sinks {
		names = append(names, s.Name)
	}
	return names
}

func checkOnly(files []*pipeline.File, only []string) error {
	var known []string
	for _, f := range files {
		known = append(known, namesOf(f)...)
	}
	for _, name := range only {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: --only %s: there is no source or sink of that name, only %v", ErrConfig, name, known)
		}
	}
	return nil
}

// running is the pipelines of one `daybook run`.
type running struct {
	options  RunOptions
	journals []*pipeline.Journal
	workers  []*pipeline.Worker
}

func (r *running) close() {
	for _, j := range r.journals {
		j.Close()
	}
}

// add opens the journal and the worker of one file; a file with nothing in Only is left out.
func (r *running) add(ctx context.Context, f *pipeline.File, files []*pipeline.File, all *stores) error {
	only := slices.DeleteFunc(slices.Clone(r.options.Only), func(n string) bool { return !slices.Contains(namesOf(f), n) })
	if len(r.options.Only) > 0 && len(only) == 0 {
		return nil
	}
	j, err := all.journal(ctx, f.Journal)
	if err != nil {
		return err
	}
	r.journals = append(r.journals, j)
	w, err := pipeline.NewWorker(f, j, pipeline.WorkerOptions{Only: only, Once: r.options.Once, Log: r.options.Log.With("pipeline", f.Pipeline)})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r.workers = append(r.workers, w)
	return r.warnUnfilled(ctx, f, files, j)
}

// run runs the workers, and beside them what answers questions about them.
func (r *running) run(ctx context.Context, all *stores) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// A service that fails ends the run: a worker that nobody can ask is a blind spot.
	services, serving := errgroup.WithContext(ctx)
	if err := r.serve(serving, services, all); err != nil {
		stop()
		return errors.Join(err, services.Wait())
	}
	errs := make([]error, len(r.workers))
	var workers sync.WaitGroup
	for i, w := range r.workers {
		workers.Go(func() { errs[i] = w.Run(serving) })
	}
	workers.Wait()
	told := ctx.Err() != nil
	stop()
	err := services.Wait()
	if told {
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, context.Canceled) })
	}
	return errors.Join(append(errs, err)...)
}

// serve starts the sockets in the folders of embedded journals and the admin pages.
func (r *running) serve(ctx context.Context, services *errgroup.Group, all *stores) error {
	page, err := admin.New(admin.Options{
		Ready:      func() error { return errors.Join(all.health(), r.ready()) },
		Status:     func() any { return r.status() },
		Collectors: append(r.collectors(), diskCollector{all.all}, soundCollector{all.all}), Version: r.options.Version, Log: r.options.Log,
	})
	if err != nil {
		return err
	}
	for _, st := range all.all() {
		services.Go(func() error { return st.serveSocket(ctx) })
		services.Go(func() error { return st.serveOwner(ctx) })
		l, err := listenSocket(st.dir, adminSocket)
		if err != nil {
			return err
		}
		services.Go(func() error { return page.Serve(ctx, l) })
	}
	if r.options.HTTP == "" {
		return nil
	}
	l, err := net.Listen("tcp", r.options.HTTP)
	if err != nil {
		return fmt.Errorf("%w: --http: %w", ErrEnvironment, err)
	}
	services.Go(func() error { return page.Serve(ctx, l) })
	return nil
}
