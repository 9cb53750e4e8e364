package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// turnPatience is how long a run with an end gives a worker that has a source to be gone:
// longer than it takes the journal to notice that one was killed.
const turnPatience = 3 * sessionTimeout

// rivals is what a run with an end knows of the workers that run its source.
type rivals struct {
	since   time.Time // when one was first seen that does not end by itself
	last    string    // the source's checkpoint
	movedAt time.Time
}

// look returns whether a worker has the source that does not end by itself, and an error
// once nothing but stopping it would help: what such a worker has not read yet nobody can
// tell, and taking its place would stop who is meant to run.
func (r *rivals) look(ctx context.Context, in *ingest, me string) (lastingOne bool, err error) {
	group := sourceGroup(in.pipeline, in.entry.Name)
	peers, err := in.journal.peers(ctx, group+turnSuffix, me)
	if err != nil {
		return false, err
	}
	others := lasting(peers)
	now := time.Now()
	if len(others) == 0 {
		r.since = time.Time{}
		return false, r.ofOnce(ctx, in, group, peers, now)
	}
	in.condition.standBy(in.log, "its turn: the source is run by "+named(others))
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) < min(turnPatience, in.patience) {
		return true, nil
	}
	return true, &StopError{
		Code: "source-taken", Where: fmt.Sprintf("source %s of pipeline %s", in.entry.Name, in.pipeline),
		Err: fmt.Errorf("it is run by %s, and what that has not read yet can't be known here", named(others)),
		Fix: "stop that worker, or run only the sinks (--only) for what is in the journal",
	}
}

// ofOnce bounds the wait for others that end by themselves: as long as they get on.
func (r *rivals) ofOnce(ctx context.Context, in *ingest, group string, peers []peer, now time.Time) error {
	held, err := in.journal.groupOffsets(ctx, group, in.entry.Stream)
	if err != nil {
		return err
	}
	checkpoint := fmt.Sprint(held)
	if r.movedAt.IsZero() || checkpoint != r.last {
		r.last, r.movedAt = checkpoint, now
	}
	if len(peers) == 0 || now.Sub(r.movedAt) < in.patience {
		return nil
	}
	return &StopError{
		Code: "others-stuck", Where: fmt.Sprintf("source %s of pipeline %s", in.entry.Name, in.pipeline),
		Err: fmt.Errorf("it is run by %s, and has not moved for %s", named(peers), in.patience),
		Fix: "see what keeps that worker, or stop it and run this again",
	}
}

// await returns when no worker has the source that does not end by itself.
func (r *rivals) await(ctx context.Context, in *ingest) error {
	for {
		taken, err := r.look(ctx, in, "")
		if err != nil {
			if err = in.trouble(ctx, err); err != nil {
				return err
			}
		} else if !taken {
			in.condition.set(StateStarting, nil)
			return nil
		}
		if pause(ctx, lookEvery) != nil {
			return in.ended(ctx)
		}
	}
}

// receives reports whether there is nothing that a run with an end could move.
func (in *ingest) receives() bool {
	_, ok := in.source.(Receiver)
	return ok
}

// runShared runs the source when it is this worker's turn, and again when another has
// taken it over.
func (in *ingest) runShared(ctx context.Context) error {
	var others rivals
	limit := time.Duration(0)
	if in.once {
		limit = lookEvery
		if err := others.await(ctx, in); err != nil {
			return err
		}
	}
	t, err := takeTurn(in.journal, sourceGroup(in.pipeline, in.entry.Name)+turnSuffix, in.entry.Stream, in.once, func() {
		in.condition.standBy(in.log, "its turn: another worker runs this source")
	})
	if err != nil {
		return err
	}
	defer t.close()
	for {
		held, release, err := t.next(ctx, limit)
		if errors.Is(err, errNoGrant) {
			if _, err = others.look(ctx, in, t.member()); err != nil {
				err = in.trouble(ctx, err)
			}
			if err == nil {
				continue
			}
			return err
		}
		if err != nil {
			in.condition.set(StateEnded, nil)
			return err
		}
		in.condition.set(StateStarting, nil)
		err = in.lives(held)
		lost := held.Err() != nil && ctx.Err() == nil
		release()
		if !lost {
			return err
		}
		in.log.Info("another worker runs the source from now on")
		in.condition.wait(StateStandby, "its turn: another worker runs this source")
	}
}
