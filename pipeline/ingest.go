package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// keepEvery is how often a source's checkpoint and frontier are written.
const keepEvery = time.Second

// firstKeep is when it is written for the first time: soon, so that a process that is
// killed again and again still gets on. The times between double from there.
const firstKeep = 100 * time.Millisecond

// settleTime is how long a run must go without an error to count as running, where
// nothing was emitted that would show it.
const settleTime = 3 * time.Second

// ingest runs one source: it appends what the source emits to its stream, once each.
type ingest struct {
	journal  *Journal
	pipeline string
	entry    *SourceEntry
	source   Source
	log      *slog.Logger
	grace    time.Duration
	shared   bool // other workers may run the source too
	once     bool
	patience time.Duration // with others that end by themselves

	condition condition
	count     sourceCounters
	fenced    int // times in a row that another writer took the source's place
	fencedAt  time.Time

	mu   sync.Mutex
	live *sourceRun // nil between runs
	last sourceCheckpoint
}

// sourceRun is what one call of Source.Run works with.
type sourceRun struct {
	stream  StreamInfo
	group   string
	emitter *emitter
	flight  *flight
	cancel  context.CancelCauseFunc
	saved   sourceCheckpoint
	savedAt time.Time
	// anchor is closed with the first checkpoint that holds a position; nil where there
	// was one from the start.
	anchor chan struct{}
}

// newIngest opens the source of an entry.
func newIngest(j *Journal, pipeline string, entry *SourceEntry, o WorkerOptions) (*ingest, error) {
	log := o.Log.With("source", entry.Name)
	source, err := entry.Config.OpenSource(SourceEnv{
		Pipeline: pipeline, Name: entry.Name, Stream: entry.Stream, Once: o.Once, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("opening source %s: %w", entry.Name, err)
	}
	in := &ingest{journal: j, pipeline: pipeline, entry: entry, source: source, log: log, grace: o.Grace, shared: j.options.Remote, once: o.Once, patience: o.Patience}
	in.condition.set(StateStarting, nil)
	return in, nil
}

// runOnce is one life of the source, from its checkpoint on.
func (in *ingest) runOnce(ctx context.Context) error {
	stream, err := in.journal.Ensure(ctx, in.entry.Stream, in.entry.Partitions, in.entry.Journals)
	if err != nil {
		return err
	}
	if err := in.journal.keepIndexes(ctx, stream.Name, in.entry.Index); err != nil {
		return err
	}
	if err := in.journal.ensureOwn(ctx, FrontierStream, keepFrontier); err != nil {
		return err
	}
	client, err := in.producer(ctx, stream)
	if err != nil {
		return err
	}
	defer client.Close()
	resumed, err := in.resume(ctx, stream)
	if err != nil {
		return err
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := in.newRun(client, stream, resumed, cancel)
	in.setLive(r)
	defer in.setLive(nil)

	err = in.drive(runCtx, r, resumed.checkpoint.Position)
	if cause := context.Cause(runCtx); err != nil && ctx.Err() == nil && cause != nil && !errors.Is(cause, errSourceRunOver) {
		return cause // the journal refused: that is why the source ended
	}
	return err
}

// producer returns the client that appends for the source. Where others could still
// append in the source's name, they are fenced first: nothing of a former incarnation
// lands after the tail was read.
func (in *ingest) producer(ctx context.Context, stream StreamInfo) (*kgo.Client, error) {
	o := append(producerOptions(in.journal.options), kgo.ProducerBatchMaxBytes(int32(min(stream.MaxMessage, maxBatch))))
	if in.journal.options.Remote {
		o = append(o, kgo.TransactionalID("daybook."+in.pipeline+"."+in.entry.Name), kgo.TransactionTimeout(30*time.Second))
	}
	client, err := in.journal.newClient(o...)
	if err != nil {
		return nil, err
	}
	if _, _, err := client.ProducerID(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("fencing the former run: %w", err)
	}
	if in.journal.options.Remote {
		if err := client.BeginTransaction(); err != nil {
			client.Close()
			return nil, fmt.Errorf("beginning a transaction: %w", err)
		}
	}
	return client, nil
}

func (in *ingest) newRun(client *kgo.Client, stream StreamInfo, resumed resumed, cancel context.CancelCauseFunc) *sourceRun {
	r := &sourceRun{stream: stream, group: sourceGroup(in.pipeline, in.entry.Name), cancel: cancel, saved: resumed.checkpoint}
	ends := map[int32]int64{}
	for p, end := range resumed.checkpoint.Ends {
		ends[p] = end
	}
	r.flight = newFlight(resumed.checkpoint.Position, ends, in.journal.options.Remote, func(err error) { cancel(err) })
	r.emitter = &emitter{
		client: client, stream: stream, source: in.entry.Name, limit: valueLimit(stream),
		stamps: in.journal.stamper(stream.Name), flight: r.flight, count: &in.count,
		turn: make(chan struct{}, 1), parts: newPartitioner(in.entry.PartitionBy, stream.Partitions), seen: resumed.seen,
	}
	if resumed.checkpoint.Position == "" {
		r.anchor = make(chan struct{})
		r.emitter.anchored = r.anchor
	}
	if in.journal.options.Remote {
		r.emitter.commit = newCommitter(r.emitter)
	}
	return r
}

// drive calls the source, with what goes on beside it, and puts everything in order
// when it returns.
func (in *ingest) drive(ctx context.Context, r *sourceRun, from Position) error {
	// What goes on beside the source outlives it, so that its last records are flushed.
	beside, endBeside := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	if r.emitter.commit != nil {
		wg.Go(func() { r.emitter.commit.run(beside) })
	}
	keeping, endKeeping := context.WithCancel(beside)
	var keep sync.WaitGroup
	keep.Go(func() { in.keep(keeping, r) })

	err := in.source.Run(ctx, from, r.emitter)

	// Nothing may be under way when the source starts again, or it would land behind the
	// tail that is read then. Only a process that ends can't wait for ever.
	finish, cancel := context.WithCancel(ctx)
	if ctx.Err() != nil {
		cancel()
		finish, cancel = context.WithTimeout(beside, in.grace)
	}
	defer cancel()
	flushErr := r.emitter.Flush(finish)
	_ = r.emitter.client.Flush(finish) // those too whose flight has failed
	if finish.Err() != nil {
		endBeside() // it may hang on what can't be flushed
	}
	endKeeping()
	keep.Wait()
	if err == nil {
		err = flushErr
	}
	if flushErr == nil {
		if keepErr := in.keepOnce(finish, r, true); err == nil {
			err = keepErr
		}
	}
	r.flight.stop(errSourceRunOver)
	endBeside()
	wg.Wait()
	return err
}

func (in *ingest) setLive(r *sourceRun) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.live = r
}
