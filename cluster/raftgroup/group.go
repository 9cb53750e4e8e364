package raftgroup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// Options are the settings of a group. Only Dir is needed: without Transport the group has one member, bootstraps
// itself, and serves when it is opened.
type Options struct {
	// Dir is the group's directory, which the journal owns.
	Dir string
	// Journal are the settings of its journal.
	Journal storage.Options
	// ID is the member's name in the group: that of the first node of a cluster by default.
	ID string
	// Transport connects the members: a transport.Group, which the group closes when it ends; if it cannot be opened, that is
	// left to the caller. Nil means that there are no other members.
	Transport raft.Transport
	// Peers are the members to bootstrap with, this one included, if the group is new. Empty: it waits to be added.
	Peers []raft.Server
	// Begun is called, if given, when the group's first entry is in the journal and before it takes part in the group; an
	// error of it ends the opening.
	Begun func() error
	// Timeout is raft's heartbeat and election timeout of groups with several members: 2 s by default.
	Timeout time.Duration
	// CommitEvery is how soon followers hear what is committed if nothing else is sent and Transport does not tell them, as
	// transport.Group does: 100 ms by default, Timeout where it does.
	CommitEvery time.Duration
	// Changed is called, if given, when another member leads, or this one begins or ceases to; it must not block.
	Changed func()
	// Copies are the others of the journal, to compare this one with and to mend it from; nil: there are none, or they are not
	// looked after, as those of a log of commands, which are not the same.
	Copies Copies
	// CareEvery is how often they are compared, if nothing happens: 10 s by default.
	CareEvery time.Duration
	// Figures counts what is found; nil: nobody asks.
	Figures *CareFigures
	// SnapshotEvery is after how many commands a Machine takes a snapshot, if it has not for a while; twice as many are kept
	// behind it. 8192 by default.
	SnapshotEvery uint64
	// RetainEvery is how often retention is applied: 10 s by default.
	RetainEvery time.Duration
	// QueueBytes bounds what waits to be proposed; Append blocks while it is full. 32 MiB by default.
	QueueBytes int64
	// Logger is silent by default. Raft's own messages below Warn are dropped.
	Logger *slog.Logger
}

// foundingID is the name of the first node of every cluster.
const foundingID = "1"

func (o Options) withDefaults() Options {
	if o.ID == "" {
		o.ID = foundingID
	}
	if o.Journal.FS == nil {
		o.Journal.FS = vfs.OS{}
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.CommitEvery == 0 {
		o.CommitEvery = min(100*time.Millisecond, o.Timeout/4)
		if _, ok := o.Transport.(teller); ok {
			o.CommitEvery = o.Timeout
		}
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = snapshotEvery
	}
	if o.RetainEvery == 0 {
		o.RetainEvery = 10 * time.Second
	}
	if o.CareEvery == 0 {
		o.CareEvery = 10 * time.Second
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 32 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Journal.Logger == nil {
		o.Journal.Logger = o.Logger
	}
	return o
}

// Group is one raft group on one journal. It is safe for concurrent use.
type Group struct {
	member
	queue     queue
	serving   serving
	care      care
	retaining chore
}

// Open opens the journal in o.Dir and joins its group. A group of one leads when Open returns; with several
// members use WaitLeader.
func Open(o Options) (*Group, error) {
	o = o.withDefaults()
	o.Journal.Commands = false
	g := &Group{}
	g.care.init(o.Figures)
	if err := g.recallDiverged(o); err != nil {
		return nil, err
	}
	o.Journal.OnDamage, o.Journal.OnFail = func(*storage.DamageError) { g.care.ring() }, g.failed
	j, err := storage.Open(o.Dir, o.Journal)
	if err != nil {
		return nil, err
	}
	g.onRefused = g.care.refuse
	g.queue.init(&g.member, o.QueueBytes, o.Transport == nil)
	if err := g.member.start(o, j, journalFSM{j}, &frontSnapshots{journal: j, alone: o.Transport == nil}, journalConfig(o)); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	g.failDiverged()
	if o.Transport == nil {
		j.Commit(g.raft.AppliedIndex()) // the state machine hears of commands only, and there may be none in the last segment
	}
	g.doChores()
	return g, nil
}

// doChores begins what the group does by itself.
func (g *Group) doChores() {
	g.retaining.start(g.o.RetainEvery, g.retainAgain)
	g.care.ring()
	g.care.start(g.o.CareEvery, func(ctx context.Context) {
		g.queue.rest()
		g.tend(ctx)
	})
}

// retainAgain applies retention, unless the group has ended.
func (g *Group) retainAgain(context.Context) {
	select {
	case <-g.done:
		return
	default:
	}
	if _, err := g.Retain(); err != nil && g.journal.Err() == nil {
		g.o.Logger.Warn("retention could not be applied; trying again", "error", err)
	}
}

// Retain applies retention now and returns the number of segments it removed.
func (g *Group) Retain() (int, error) {
	if !g.mirrors() { // raft does not hand its own entries to the state machine, but what is applied is committed
		g.journal.Commit(g.raft.AppliedIndex())
	}
	return g.journal.Retain()
}

// Close answers what is queued with ErrClosed, waits for what is proposed, and closes the journal. What a leader cannot
// get a majority to store, though it is heard, as with disks that are full or frames that are refused, has an unknown
// outcome after two timeouts.
func (g *Group) Close() error {
	if !g.beginStop() {
		<-g.done
		return nil
	}
	g.retaining.end()
	g.care.end()
	giveUp := time.AfterFunc(2*g.o.Timeout, g.shutdown)
	g.queue.close()
	giveUp.Stop()
	g.retaining.wait()
	g.care.wait()
	return g.member.stop()
}
