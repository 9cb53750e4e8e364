package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

const (
	// CommandSegment is the segment size of a command log by default: snapshots cut its front in whole segments.
	CommandSegment = 4 << 20
	// A snapshot is taken after so many commands, and more than that are kept behind it: if the newest snapshot cannot
	// be read, the one before it and the log still give the same state.
	snapshotEvery = 8192
)

// Machine is a replicated state machine whose log is a journal of commands. It is safe for concurrent use.
type Machine struct {
	member
	snapshots *fileSnapshots
	outliving chan struct{} // holds a token while damage is outlived
	outlives  chore
}

// OpenMachine opens the log in o.Dir, restores fsm from the last snapshot and the commands behind it, and joins the group.
// A group of one leads, and has applied everything, when OpenMachine returns. The command log is always Durable.
func OpenMachine(o Options, fsm raft.FSM) (*Machine, error) {
	o = o.withDefaults()
	o.Journal.Commands, o.Journal.Mode, o.Journal.Retention = true, storage.Durable, storage.Retention{}
	if o.Journal.SegmentBytes == 0 {
		o.Journal.SegmentBytes = CommandSegment
	}
	g := &Machine{outliving: make(chan struct{}, 1)}
	o.Journal.OnFail, o.Journal.OnDamage = g.failed, func(*storage.DamageError) { g.outlives.ring() }
	j, err := storage.Open(o.Dir, o.Journal)
	if err != nil {
		return nil, err
	}
	if err := g.open(o, j, fsm); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return g, nil
}

func (g *Machine) open(o Options, j *storage.Journal, fsm raft.FSM) (err error) {
	if g.snapshots, err = openSnapshots(o.Journal.FS, o.Dir, o.Logger); err != nil {
		return err
	}
	if err := g.snapshots.matchLog(j); err != nil {
		return err
	}
	g.snapshots.ready = func(index, term uint64) error {
		if _, _, has := j.Anchor(index, term); has {
			return nil // it is of this log
		}
		return j.ReadyToCut() // it takes the place of the whole log
	}
	c := baseConfig(o)
	c.SnapshotThreshold = o.SnapshotEvery
	c.TrailingLogs = 2 * o.SnapshotEvery
	c.SnapshotInterval = 30 * time.Second
	if err := g.member.start(o, j, fsm, g.snapshots, c); err != nil {
		return err
	}
	g.outlives.start(o.CareEvery, g.outliveAgain)
	return nil
}

// Apply replicates a command and returns what the state machine's Apply gave for it. The error is ErrNotLeader or
// one of storage.Refused if the command was not applied, ErrUnknownOutcome if it may or may not have been.
func (g *Machine) Apply(ctx context.Context, command []byte) (any, error) {
	v, _, err := g.ApplyIndexed(ctx, command)
	return v, err
}

// ApplyIndexed is Apply, and returns the entry that the command is in.
func (g *Machine) ApplyIndexed(ctx context.Context, command []byte) (v any, index uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if len(command) > storage.MaxBatchBytes {
		return nil, 0, fmt.Errorf("command of %d bytes is larger than %d", len(command), storage.MaxBatchBytes)
	}
	n := storage.CommandBytes(len(command))
	if err := g.journal.Reserve(n); err != nil {
		return nil, 0, err
	}
	defer g.journal.Unreserve(n)
	f := g.raft.Apply(command, 0)
	if err := appendErr(g.await(f)); err != nil {
		return nil, 0, err
	}
	return f.Response(), f.Index(), nil
}

// Barrier returns when everything that was committed before the call is applied here.
func (g *Machine) Barrier(ctx context.Context) error {
	timeout := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Nanosecond)
	}
	return appendErr(g.await(g.raft.Barrier(timeout)))
}

// Blank says that the group has neither entries nor a snapshot.
func (g *Machine) Blank() (bool, error) {
	last, err := g.journal.LastIndex()
	if err != nil || last > 0 {
		return false, err
	}
	snaps, err := g.snapshots.List()
	return len(snaps) == 0, err
}

// Snapshot takes a snapshot now. It is not needed in the normal course.
func (g *Machine) Snapshot() error {
	err := g.await(g.raft.Snapshot())
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// Close waits for what is being applied and closes the log.
func (g *Machine) Close() error {
	if !g.beginStop() {
		<-g.done
		return nil
	}
	g.outlives.end()
	err := g.member.stop()
	g.outlives.wait()
	return err
}
