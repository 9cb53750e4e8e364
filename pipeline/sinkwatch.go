package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// measureEvery is how often a sink's distance to the end of its streams is measured.
const measureEvery = 2 * time.Second

// unheard is how often in a row the journal may leave a question unanswered before a
// sink is said not to run.
const unheard = 5

// sinkWatch looks at a sink from beside: how far it is behind, also while it is stuck,
// and whether it is stuck. Nothing that hangs says so itself.
type sinkWatch struct {
	d        *deliver
	failures int
	missing  int   // how often in a row a stream was not there
	moved    int64 // what the counters showed last
	movedAt  time.Time
}

// watch runs until ctx ends.
func (d *deliver) watch(ctx context.Context) {
	w := sinkWatch{d: d, movedAt: time.Now()}
	for pause(ctx, measureEvery) == nil {
		err := errors.Join(d.measureOnce(ctx), d.checkStreams(ctx))
		if ctx.Err() != nil {
			return
		}
		w.heard(err)
		w.checkMoves(time.Now())
	}
}

// heard notices a journal that does not answer, which a reader that waits for records
// can't tell from one that has none.
func (w *sinkWatch) heard(err error) {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		// A node that has just started may not know it yet.
		if w.missing++; w.missing == unheard {
			w.d.void.Store(&err)
		}
		return
	}
	w.missing = 0
	if err != nil {
		if w.failures++; w.failures >= unheard {
			w.d.condition.set(StateRetrying, fmt.Errorf("the journal does not answer: %w", err))
		}
		return
	}
	if w.failures >= unheard {
		w.d.condition.set(StateRunning, nil)
	}
	w.failures = 0
}

// checkStreams ends a session whose stream was deleted and made again: its reader waits
// at an offset of the old one, and would never hear of it.
func (d *deliver) checkStreams(ctx context.Context) error {
	reads := d.reads.Load()
	if reads == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, measureEvery)
	defer cancel()
	topics, err := d.journal.admin.ListTopics(limited, d.entry.Streams...)
	if err != nil {
		return fmt.Errorf("asking for streams %v: %w", d.entry.Streams, err)
	}
	for name, was := range *reads {
		if now := topics[name]; now.Err == nil && now.ID.String() != was.ID {
			gone := fmt.Errorf("stream %s was deleted and made again (id %s, now %s)", name, was.ID, now.ID)
			d.void.Store(&gone)
		}
	}
	return nil
}

// checkMoves notices a sink that says it runs, while records wait and nothing moves.
func (w *sinkWatch) checkMoves(now time.Time) {
	c := &w.d.count
	moved := c.in.Load() + c.out.Load() + c.batches.Load()
	stalled := w.d.condition.is(StateStalled)
	if moved != w.moved || !stalled && !w.d.condition.is(StateRunning) {
		w.moved, w.movedAt = moved, now
		if stalled {
			w.d.condition.set(StateRunning, nil)
			w.d.log.Info("the sink moves again")
		}
		return
	}
	what := w.d.waitsFor()
	if what == "" || now.Sub(w.movedAt) < w.d.options.StalledAfter {
		return
	}
	if trouble := w.d.journal.trouble.since(time.Minute); trouble != "" {
		what += "; the journal's client says: " + trouble
	}
	err := fmt.Errorf("nothing has moved since %s although %d offsets wait: %s", w.movedAt.UTC().Format(time.RFC3339), c.behind.Load(), what)
	if !stalled {
		w.d.log.Error("the sink is stalled", "error", err)
	}
	w.d.condition.set(StateStalled, err)
}

// waitsFor says what keeps a sink that is behind from moving on; nothing where it has
// read all there is and waits for the time to close its files.
func (d *deliver) waitsFor() string {
	if began := d.count.calling.Load(); began != 0 {
		return "the destination has not answered since " + time.Unix(0, began).UTC().Format(time.RFC3339)
	}
	if held := d.count.held.Load(); d.count.unread.Load() > 0 && held > 0 {
		return fmt.Sprintf("%d are held for their order, until a partition that is behind catches up or is idle for long enough", held)
	}
	if d.count.unread.Load() > 0 {
		return "the journal gives none of them"
	}
	return ""
}

// countKept adds the dead letters and late records of earlier runs to those of this one,
// so that a restart does not make them look settled. It is called before any is kept.
func (d *deliver) countKept(ctx context.Context) error {
	if d.count.kept {
		return nil
	}
	dead, late, err := d.journal.KeptAside(ctx, d.pipeline, d.asideName)
	if err != nil {
		return err
	}
	d.count.dead.Add(dead)
	d.count.late.Add(late)
	d.count.kept = true
	return nil
}

// KeptAside returns how many records of a sink are kept as dead letters and as late.
func (j *Journal) KeptAside(ctx context.Context, pipeline, sink string) (dead, late int64, err error) {
	if dead, err = j.kept(ctx, DeadStream(pipeline, sink)); err != nil {
		return 0, 0, err
	}
	late, err = j.kept(ctx, LateStream(pipeline, sink))
	return dead, late, err
}

// kept is the number of offsets between a stream's ends, 0 where there is no such stream.
func (j *Journal) kept(ctx context.Context, stream string) (int64, error) {
	ends, err := j.Ends(ctx, stream)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	starts, err := j.Starts(ctx, stream)
	if err != nil {
		return 0, err
	}
	var n int64
	for p, end := range ends {
		n += end - starts[p]
	}
	return n, nil
}

// measureOnce counts what the sink has not delivered and what it has not read.
func (d *deliver) measureOnce(ctx context.Context) error {
	at := d.cursor.Load()
	if at == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, measureEvery)
	defer cancel()
	ends, err := d.journal.CommittedEnds(limited, d.entry.Streams...)
	if err != nil {
		return err
	}
	var behind, all int64
	var first Partition
	for p, o := range *at {
		all += ends[p]
		if ends[p] > o {
			behind += ends[p] - o
			first = p
		}
	}
	d.count.behind.Store(behind)
	if read := d.count.readTo.Load(); read > 0 {
		d.count.unread.Store(max(all-read, 0))
	}
	if behind == 0 || d.count.stamp.Load() != 0 || d.count.waiting.Load() != 0 {
		return nil
	}
	// Nothing was delivered since the start: the sink is behind since the record that
	// waits, not since now.
	k, err := d.journal.recordAt(limited, first, (*at)[first], ends[first])
	if err == nil && k != nil {
		d.count.waiting.Store(fromKafka(k, nil).Stamp)
	}
	return err
}
