package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// goal is what a sink's run with an end brings to the destination: all that the journal
// held at its start, whoever delivers it. One goroutine uses it.
type goal struct {
	starts, ends map[Partition]int64
	reached      map[Partition]bool // this worker's own sessions brought it there
	sum          int64              // of the cursors of what others deliver
	movedAt      time.Time          // when sum last changed, or something was done here
}

// lookEvery is how often a run with an end looks how far other workers are.
const lookEvery = time.Second

// setGoal notes what there is, the first time it is called.
func (d *deliver) setGoal(ctx context.Context) error {
	if d.goal != nil {
		return nil
	}
	ends, err := d.journal.CommittedEnds(ctx, d.entry.Streams...)
	if err != nil {
		return err
	}
	starts, err := d.journal.Starts(ctx, d.entry.Streams...)
	if err != nil {
		return err
	}
	d.goal = &goal{starts: starts, ends: ends, reached: map[Partition]bool{}, movedAt: time.Now()}
	return nil
}

// runToGoal ends when all that there was at the start is at the destination. What others
// deliver is left to them, and what they leave behind is taken over.
//
// Workers that go on after this one keep their partitions: it joins them only when they
// are gone, so that a run with an end never slows one that delivers.
func (d *deliver) runToGoal(ctx context.Context, streams map[string]StreamInfo) error {
	group := sinkGroup(d.pipeline, d.entry.Name)
	for {
		peers, done, err := d.lookAtOthers(ctx, group, "")
		if done || err != nil {
			return err
		}
		if len(lasting(peers)) == 0 {
			break
		}
		if err := pause(ctx, lookEvery); err != nil {
			return err
		}
	}
	d.condition.set(StateStarting, nil)
	o, err := d.join(group, func() {})
	if err != nil {
		return err
	}
	defer o.close()
	for {
		if _, done, err := d.lookAtOthers(ctx, group, o.member()); done || err != nil {
			return err
		}
		if err := d.toGoal(ctx, o, streams); err != nil {
			return err
		}
	}
}

// toGoal delivers the partitions that it is given, if it is given any.
func (d *deliver) toGoal(ctx context.Context, o owner, streams map[string]StreamInfo) error {
	parts, held, release, err := o.next(ctx, lookEvery)
	if errors.Is(err, errNoGrant) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if !slices.ContainsFunc(parts, func(p Partition) bool { return !d.goal.reached[p] }) {
		return nil
	}
	err = d.session(held, o, streams, parts)
	d.goal.movedAt = time.Now()
	if held.Err() != nil && ctx.Err() == nil {
		return nil // they are another worker's now
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		d.goal.reached[p] = true
	}
	return nil
}

// lookAtOthers returns the other workers of the sink, and whether all is delivered: a
// partition is where this worker brought it to its end, or the one that has it says so. The
// error says who has what where nothing moved for too long.
func (d *deliver) lookAtOthers(ctx context.Context, group, me string) (peers []peer, done bool, err error) {
	g := d.goal
	open := slices.DeleteFunc(sortedPartitions(g.ends), func(p Partition) bool { return g.reached[p] })
	if len(open) == 0 {
		return nil, true, nil
	}
	if peers, err = d.journal.peers(ctx, group, me); err != nil {
		return nil, false, err
	}
	held, err := d.journal.groupOffsets(ctx, group, d.entry.Streams...)
	if err != nil {
		return nil, false, err
	}
	at := maps.Clone(g.starts)
	for p, o := range held {
		at[p] = o.At
	}
	var missing []string
	var sum int64
	for _, p := range open {
		sum += at[p]
		i := slices.IndexFunc(peers, func(w peer) bool { return slices.Contains(w.parts, p) })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("%s (at %d of %d): nobody", p, at[p], g.ends[p]))
		case at[p] < g.ends[p]:
			missing = append(missing, fmt.Sprintf("%s (at %d of %d): %s", p, at[p], g.ends[p], &peers[i]))
		}
	}
	if len(missing) == 0 {
		d.log.Info("other workers have delivered all that was in the journal at the start", "partitions", len(open), "workers", named(peers))
		return peers, true, nil
	}
	if sum != g.sum || len(peers) == 0 { // who is alone gets all in a moment
		g.sum, g.movedAt = sum, time.Now()
	}
	if len(peers) > 0 {
		d.condition.standBy(d.log, "what other workers deliver: "+some(missing))
	}
	if time.Since(g.movedAt) < d.options.Patience {
		return peers, false, nil
	}
	return peers, false, &StopError{
		Code: "others-stuck", Where: "sink " + d.entry.Name,
		Err: fmt.Errorf("what was in the journal at the start is not all delivered, and no other worker has moved for %s: %s", d.options.Patience, strings.Join(missing, "; ")),
		Fix: "see with `daybook status` what keeps these workers (a sink of files may wait for the time to close them), or stop them and run this again",
	}
}

// some lists the first few.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(names[:most], "; "), len(names)-most)
}
