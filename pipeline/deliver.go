package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// deliver runs one sink: it hands the records of its streams to the destination and
// moves the cursor once they are durable there.
type deliver struct {
	journal  *Journal
	pipeline string
	entry    *SinkEntry
	where    *Where // nil where the sink takes all
	// changed says which streams the file itself fills with changes of databases.
	changes map[string]bool
	options WorkerOptions
	goal    *goal // of a run with an end, once it is known
	epoch   uint16
	// asideName is the sink's name in its dead-letter and late streams.
	asideName string
	log       *slog.Logger

	condition condition
	count     sinkCounters
	saidDead  time.Time                             // when a dead letter was last logged
	opened    atomic.Pointer[Sink]                  // the sink of the session last opened
	cursor    atomic.Pointer[map[Partition]int64]   // the last durable mark's offsets
	reads     atomic.Pointer[map[string]StreamInfo] // the streams of the session last opened
	void      atomic.Pointer[error]                 // why that session must not go on, see checkStreams
}

// sinkCounters are the numbers of a sink that live longer than its sessions.
type sinkCounters struct {
	in, out, bytes, filtered, dead, late, tombstones, batches atomic.Int64
	stamp                                                     atomic.Int64 // of the last record handed over
	waiting                                                   atomic.Int64 // stamp of the record at the cursor, before the first is handed over
	watermark, held, heldBytes                                atomic.Int64
	behind, unread                                            atomic.Int64 // offsets
	readTo                                                    atomic.Int64 // sum of the offsets read up to
	calling                                                   atomic.Int64 // when the destination was called that has not answered, in ns; 0: none
	retries                                                   atomic.Int64
	kept                                                      bool // dead and late hold what earlier runs kept
}

// newDeliver prepares the sink of an entry. The destination is opened by run.
func newDeliver(j *Journal, f *File, entry *SinkEntry, o WorkerOptions) (*deliver, error) {
	d := &deliver{journal: j, pipeline: f.Pipeline, entry: entry, options: o, changes: map[string]bool{}, asideName: entry.Name}
	d.log = o.Log.With("sink", entry.Name)
	if entry.Where != "" {
		w, err := CompileWhere(entry.Where)
		if err != nil {
			return nil, fmt.Errorf("sink %s: where: %w", entry.Name, err)
		}
		d.where = w
	}
	for i := range f.Sources {
		if f.Sources[i].changes {
			d.changes[f.Sources[i].Stream] = true
		}
	}
	d.condition.set(StateStarting, nil)
	return d, nil
}

// sinkGroup is the consumer group that holds a sink's cursor.
func sinkGroup(pipeline, sink string) string { return "daybook.sink." + pipeline + "." + sink }

// run delivers until ctx ends, the run is done (Once) or someone must act; after other
// errors it begins again at the cursor.
func (d *deliver) run(ctx context.Context) error {
	measuring, endMeasuring := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { d.watch(measuring) })
	defer func() {
		endMeasuring()
		beside.Wait()
	}()
	var wait backoff
	for {
		out, began := d.count.out.Load(), time.Now()
		err := d.runOnce(ctx)
		switch {
		case err == nil:
			d.condition.set(StateDone, nil)
			return nil
		case ctx.Err() != nil:
			d.condition.set(StateEnded, nil)
			return ctx.Err()
		case errors.Is(err, errRevoked):
			continue
		}
		var stop *StopError
		if errors.As(err, &stop) {
			d.condition.set(StateStopped, err)
			d.log.Error("sink stopped", "error", err)
			return fmt.Errorf("sink %s: %w", d.entry.Name, err)
		}
		d.retrying(err)
		if d.count.out.Load() > out || time.Since(began) > time.Minute {
			wait.reset()
		}
		if wait.next(ctx) != nil {
			d.condition.set(StateEnded, nil)
			return ctx.Err()
		}
	}
}

// errRevoked ends a session whose partitions another worker has now.
var errRevoked = errors.New("the partitions were given to another worker")

// retrying notes an error that waiting may mend, and logs it where it is new.
func (d *deliver) retrying(err error) {
	d.count.retries.Add(1)
	if was := d.condition.get(); was.State != StateRetrying || was.Error != err.Error() {
		d.log.Warn("sink fails, trying again", "error", err)
	}
	d.condition.set(StateRetrying, err)
}

// runOnce owns partitions and delivers them, session after session.
func (d *deliver) runOnce(ctx context.Context) error {
	streams, err := d.awaitStreams(ctx)
	if err != nil {
		return err
	}
	if d.options.Once {
		if err := d.setGoal(ctx); err != nil {
			return err
		}
		if d.journal.options.Remote {
			return d.runToGoal(ctx, streams)
		}
	}
	o, err := d.newOwner(streams)
	if err != nil {
		return err
	}
	defer o.close()
	for {
		parts, held, release, err := o.next(ctx, 0)
		if err != nil {
			return err
		}
		err = d.session(held, o, streams, parts)
		lost := held.Err() != nil && ctx.Err() == nil
		release()
		if err == nil || !lost {
			return err
		}
	}
}

func (d *deliver) session(ctx context.Context, o owner, streams map[string]StreamInfo, parts []Partition) error {
	d.reads.Store(&streams)
	d.void.Store(nil)
	s, err := newSession(ctx, d, o, streams, parts)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// awaitStreams waits until all streams of the sink are there: who fills a stream makes
// it, in the shape that it wants.
func (d *deliver) awaitStreams(ctx context.Context) (map[string]StreamInfo, error) {
	out := map[string]StreamInfo{}
	for _, name := range d.entry.Streams {
		for {
			info, err := d.journal.awaitLeaders(ctx, name)
			if err == nil {
				out[name] = info
				break
			}
			if !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, err
			}
			if d.options.Once {
				return nil, &StopError{Code: "no-stream", Where: "stream " + name, Err: err, Fix: "run the source that fills it first"}
			}
			d.condition.wait(StateStarting, fmt.Sprintf("stream %s, which does not exist yet", name))
			if err := pause(ctx, 250*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return out, d.journal.ensureOwn(ctx, FrontierStream, keepFrontier)
}

func (d *deliver) newOwner(streams map[string]StreamInfo) (owner, error) {
	group := sinkGroup(d.pipeline, d.entry.Name)
	if d.journal.options.Remote {
		return d.join(group, func() {
			d.condition.standBy(d.log, "partitions: other workers deliver them all")
		})
	}
	return &soleOwner{journal: d.journal, group: group, parts: partitionsOf(streams)}, nil
}

// join makes this worker one of those that share the sink's partitions.
func (d *deliver) join(group string, idle func()) (*groupOwner, error) {
	whole := d.entry.Order != nil && d.entry.Order.Per != "partition"
	return newGroupOwner(d.journal, group, d.entry.Streams, whole, d.options.Once, idle)
}

// ordersChanges reports whether the sink's streams hold changes of databases, by what
// the file says and by the last record of each.
func (d *deliver) ordersChanges(ctx context.Context, parts []Partition) (bool, error) {
	for _, p := range parts {
		if d.changes[p.Stream] {
			return true, nil
		}
	}
	ends, err := d.journal.CommittedEnds(ctx, d.entry.Streams...)
	if err != nil {
		return false, err
	}
	starts, err := d.journal.Starts(ctx, d.entry.Streams...)
	if err != nil {
		return false, err
	}
	for _, p := range parts {
		k, err := d.journal.lastRecord(ctx, p, starts[p], ends[p])
		if err != nil {
			return false, err
		}
		if k == nil {
			continue
		}
		delivery, err := NewDelivery(fromKafka(k, nil), 0)
		if err == nil && delivery.Change() {
			d.changes[p.Stream] = true
			return true, nil
		}
	}
	return false, nil
}

// checkOrder refuses to sort changes by time where the user does not insist.
func (d *deliver) checkOrder(changes bool) error {
	o := d.entry.Order
	if o == nil || !changes || o.By != "event" || o.IKnow {
		return nil
	}
	return &StopError{
		Code: "order-inverts-changes", Where: "sink " + d.entry.Name,
		Err: fmt.Errorf("`by: event` sorts the changes in %v by time, but the times of a database do not rise in the order of its commits: updates of a row could change places", d.entry.Streams),
		Fix: "leave `by` out, or add `i_know: true`",
	}
}

// streamIDs lists the streams as a sink wants them.
func streamIDs(streams map[string]StreamInfo) []StreamID {
	out := make([]StreamID, 0, len(streams))
	for _, s := range streams {
		out = append(out, StreamID{Name: s.Name, ID: s.ID})
	}
	slices.SortFunc(out, func(a, b StreamID) int { return compareText(a.Name, b.Name) })
	return out
}
