package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// fencedWithin is how close together the times must be for a rival to be the reason.
const fencedWithin = 5 * time.Minute

// run runs the source until ctx ends, it is done or someone must act. Where other workers
// may run it too it waits for its turn.
func (in *ingest) run(ctx context.Context) error {
	receives := in.once && in.receives()
	if !in.shared && !receives {
		return in.lives(ctx)
	}
	if err := in.ensureStream(ctx); err != nil {
		return err
	}
	if receives {
		in.condition.set(StateDone, nil)
		return nil
	}
	return in.runShared(ctx)
}

// ensureStream makes the stream that the workers of a source meet at, however long the journal takes to answer.
func (in *ingest) ensureStream(ctx context.Context) error {
	var wait backoff
	for {
		_, err := in.journal.Ensure(ctx, in.entry.Stream, in.entry.Partitions, in.entry.Journals)
		if err == nil {
			return nil
		}
		if err = in.trouble(ctx, err); err != nil {
			return err
		}
		if wait.next(ctx) != nil {
			return in.ended(ctx)
		}
	}
}

// lives runs the source until ctx ends, it is done or someone must act; after other
// errors it begins again at the last checkpoint.
func (in *ingest) lives(ctx context.Context) error {
	var wait backoff
	for {
		began, before := time.Now(), in.count.records.Load()
		err := in.runOnce(ctx)
		switch {
		case err == nil:
			in.condition.set(StateDone, nil)
			return nil
		case ctx.Err() != nil:
			return in.ended(ctx)
		}
		if err = in.trouble(ctx, err); err != nil {
			return err
		}
		if time.Since(began) > time.Minute || in.count.records.Load() > before {
			wait.reset()
		}
		if wait.next(ctx) != nil {
			return in.ended(ctx)
		}
	}
}

func (in *ingest) ended(ctx context.Context) error {
	in.condition.set(StateEnded, nil)
	return ctx.Err()
}

// trouble notes an error, and returns one only where trying again won't mend it.
func (in *ingest) trouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return in.ended(ctx)
	}
	fenced := isFenced(err)
	err = in.judge(err)
	var stop *StopError
	if errors.As(err, &stop) {
		in.condition.set(StateStopped, err)
		in.log.Error("source stopped", "error", err)
		return fmt.Errorf("source %s: %w", in.entry.Name, err)
	}
	if in.condition.get().Error != err.Error() || !in.condition.is(StateRetrying) {
		in.log.Warn("source fails, trying again", "error", err)
	}
	in.condition.set(StateRetrying, err)
	if fenced && in.shared {
		// Whoever took over has the turn by now; its news is at most a heartbeat away. Trying
		// again before it is here would fence the successor.
		_ = pause(ctx, 3*heartbeatInterval)
	}
	return nil
}

func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// judge turns errors of the journal that trying again won't mend into StopErrors.
func (in *ingest) judge(err error) error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge):
		return &StopError{
			Code: "record-too-large", Where: "stream " + in.entry.Stream, Err: err,
			Fix: "raise max.message.bytes of the stream: the key or headers of a record alone are longer than it takes",
		}
	case isFenced(err):
		// Once may be a transaction that timed out while the process was held up.
		if time.Since(in.fencedAt) > fencedWithin {
			in.fenced = 0
		}
		in.fencedAt = time.Now()
		in.fenced++
		if in.fenced >= 3 {
			return &StopError{
				Code: "source-fenced", Where: fmt.Sprintf("source %s of pipeline %s", in.entry.Name, in.pipeline), Err: err,
				Fix: "another worker runs this source: let only one do so",
			}
		}
	}
	return err
}
