package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

// member is what groups of both kinds are made of: a journal and the raft instance on it.
type member struct {
	o       Options
	journal *storage.Journal
	raft    *raft.Raft
	store   *store
	alone   *aloneTransport           // nil with other members
	started atomic.Pointer[raft.Raft] // raft, for goroutines that may ask before it is there
	began   time.Time

	onRefused func([]*raft.Log) // for store; nil: nobody asks

	outcast error // set before start: why the member takes nothing and votes for nobody

	progress        progress // of the others, while this one leads
	failedHandOvers failedHandOvers
	doubts          doubts

	stopOnce sync.Once
	ended    sync.Once
	stopping chan struct{} // closed when Close begins
	done     chan struct{} // closed when raft has ended
	watching sync.WaitGroup

	failMu  sync.Mutex
	watches bool // the journal's end ends the member; guarded by failMu

	errMu sync.Mutex
	err   error // why the group ended; guarded by errMu
}

// binder is a transport that sends entries as the frames of a journal: transport.Group, or one like it.
type binder interface {
	Bind(journal transport.Journal, self raft.ServerID, servers func() []raft.Server)
}

// teller is a transport that tells followers what is committed, and is told of what is appended.
type teller interface {
	TellCommitted(transport.Committed)
	Appends()
}

// holder is a transport that has raft wait for members which are not there, until it is told that raft is to end.
type holder interface{ LetGo() }

var (
	_ holder = (*transport.Group)(nil)
	_ binder = (*transport.Group)(nil)
	_ teller = (*transport.Group)(nil)
)

// start brings raft up over the journal.
func (m *member) start(o Options, j *storage.Journal, fsm raft.FSM, snaps raft.SnapshotStore, conf *raft.Config) error {
	m.o, m.journal, m.began = o, j, time.Now()
	m.stopping, m.done = make(chan struct{}), make(chan struct{})
	m.store = &store{Journal: j, mayVote: m.mayRecordVote, outcast: m.outcast}
	m.store.snapshots, _ = snaps.(*fileSnapshots)
	m.store.applied, m.store.leading = m.applied, m.Leads
	m.doubts.in.Store(j.Doubt())
	trans := o.Transport
	if trans == nil {
		m.alone = newAloneTransport(raft.ServerAddress(o.ID))
		trans = m.alone
		if err := m.endDoubt(); err != nil { // nobody has a better copy
			return err
		}
	}
	if s, ok := trans.(surveyor); ok {
		s.Elect(transport.Elector{MayVote: m.mayVote, Standing: m.standing, Candidacy: m.candidacy})
	}
	if b, ok := trans.(binder); ok {
		m.store.onRefused = m.onRefused
		b.Bind(m.store, raft.ServerID(o.ID), m.Servers)
	}
	if t, ok := trans.(teller); ok {
		t.TellCommitted(m.committed)
		m.store.onAppend = t.Appends
	}
	if err := m.bootstrap(conf, snaps, trans); err != nil {
		return fmt.Errorf("starting the group in %s: %w", o.Dir, err)
	}
	if o.Begun != nil {
		if err := o.Begun(); err != nil {
			return err
		}
	}
	var err error
	if m.raft, err = m.newRaft(conf, fsm, snaps, trans); err != nil {
		return fmt.Errorf("starting the group in %s: %w", o.Dir, err)
	}
	if o.Changed != nil {
		m.raft.RegisterObserver(raft.NewObserver(nil, false, func(*raft.Observation) bool { o.Changed(); return false }))
	}
	m.started.Store(m.raft)
	m.store.started.Store(true)
	m.watch()
	if m.doubts.in.Load() {
		m.watching.Go(m.resolveDoubt)
	}
	if m.alone == nil {
		return nil
	}
	if err := m.lead(); err != nil {
		m.beginStop()
		m.shutdown()
		return fmt.Errorf("starting the group in %s: %w", o.Dir, err)
	}
	return nil
}

// bootstrap writes the first configuration into a new group's log.
func (m *member) bootstrap(conf *raft.Config, snaps raft.SnapshotStore, trans raft.Transport) error {
	peers := m.o.Peers
	if m.alone != nil {
		peers = []raft.Server{{Suffrage: raft.Voter, ID: conf.LocalID, Address: trans.LocalAddr()}}
	}
	if len(peers) == 0 {
		return nil
	}
	known, err := raft.HasExistingState(m.store, m.store, snaps)
	if err != nil {
		return err
	}
	first := raft.Configuration{Servers: peers}
	if !known {
		return raft.BootstrapCluster(conf, m.store, m.store, snaps, trans, first)
	}
	return m.finishBootstrap(snaps, first)
}

// finishBootstrap is for a group that was killed while it was founded: raft notes the first term before it writes the
// first configuration, and without one nobody can ever lead.
func (m *member) finishBootstrap(snaps raft.SnapshotStore, first raft.Configuration) error {
	last, err := m.store.LastIndex()
	if err != nil || last > 0 {
		return err
	}
	if list, err := snaps.List(); err != nil || len(list) > 0 {
		return err // the log's entries are behind a snapshot, or were trimmed
	}
	return m.store.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(first)})
}

// newRaft is raft.NewRaft, which panics when an entry of the log cannot be read.
func (m *member) newRaft(conf *raft.Config, fsm raft.FSM, snaps raft.SnapshotStore, trans raft.Transport) (r *raft.Raft, err error) {
	defer func() {
		if p := recover(); p != nil {
			if err = m.store.firstErr(); err == nil {
				panic(p)
			}
		}
	}()
	return raft.NewRaft(conf, fsm, m.store, m.store, snaps, trans)
}

// lead makes the only member leader at once, by the message that hands leadership over, and waits until everything in
// the log is applied.
func (m *member) lead() error {
	for _, s := range m.Servers() {
		if s.ID != raft.ServerID(m.o.ID) {
			return fmt.Errorf("member %s is to go on alone, but the group has member %s too: open it with a network, or take the others out first", m.o.ID, s.ID)
		}
	}
	m.alone.stand()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.WaitLeader(ctx); err != nil {
		return err
	}
	return m.raft.Barrier(30 * time.Second).Error()
}

// watch has the member end when the journal fails: one whose disk is in doubt must not go on.
func (m *member) watch() {
	m.failMu.Lock()
	m.watches = true
	m.failMu.Unlock()
	if m.journal.Err() != nil {
		m.failed()
	}
}

// failed is called when the journal has failed, maybe before the member is there.
func (m *member) failed() {
	m.failMu.Lock()
	defer m.failMu.Unlock()
	if m.watches {
		m.watches = false
		m.watching.Go(m.fail)
	}
}

// fail ends raft because of the journal.
func (m *member) fail() {
	err := m.journal.Err()
	if !errors.Is(err, storage.ErrClosed) && !errors.Is(err, ErrReopen) {
		m.o.Logger.Error("a journal has become read-only after an error of its disk: nothing is appended to it any more, what it has is read; restart the node once the cause is gone",
			"dir", m.o.Dir, "error", err)
	}
	m.setErr(err)
	if m.alone == nil && m.raft.State() == raft.Leader {
		m.bequeath()
	}
	m.shutdown()
}

// bequeath hands the lead over, if raft can still do that: where it was its main goroutine that met the error, nothing
// that it is asked is ever answered. At worst the others elect a leader when they miss this one.
func (m *member) bequeath() {
	handed := make(chan struct{})
	go func() { // ends with the answer, or the member
		_ = m.HandOver(nil)
		close(handed)
	}()
	select {
	case <-handed:
	case <-time.After(m.o.Timeout):
	}
}

func (m *member) shutdown() {
	defer m.ended.Do(func() { close(m.done) })
	if m.mirrors() {
		return
	}
	end := m.raft.Shutdown()
	if t, ok := m.o.Transport.(holder); ok {
		t.LetGo()
	}
	_ = end.Error() // always nil in this version; there is nothing to do about one
}

func (m *member) setErr(err error) {
	m.errMu.Lock()
	defer m.errMu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

// Err is why the group ended by itself, or nil.
func (m *member) Err() error {
	m.errMu.Lock()
	defer m.errMu.Unlock()
	return m.err
}

// Done is closed when the group has ended: after Close, or because its journal failed, which Err then says.
func (m *member) Done() <-chan struct{} { return m.done }

// Options are the settings that the member runs with.
func (m *member) Options() Options { return m.o }

// Busy is for how long the member has been at work on what its leader sent; 0 if it is not.
func (m *member) Busy() time.Duration {
	if t, ok := m.o.Transport.(interface{ Busy() time.Duration }); ok {
		return t.Busy()
	}
	return 0
}

// ClosedErr is why the group no longer serves.
func (m *member) ClosedErr() error {
	if err := m.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// beginStop is true for the first caller, who then has to call stop.
func (m *member) beginStop() (first bool) {
	m.stopOnce.Do(func() {
		m.failMu.Lock()
		m.watches = false
		m.failMu.Unlock()
		close(m.stopping)
		first = true
	})
	return first
}

// stop ends raft and closes the journal.
func (m *member) stop() error {
	m.watching.Wait()
	m.shutdown()
	return m.journal.Close()
}

// applied is the last entry that raft has given to the state machine.
func (m *member) applied() uint64 {
	if r := m.started.Load(); r != nil {
		return r.AppliedIndex()
	}
	return 0
}

// committed is the last entry that is known to be committed, and the term in which this member led when it was.
func (m *member) committed() (index, term uint64, leads bool) {
	r := m.started.Load()
	if r == nil || r.State() != raft.Leader {
		return 0, 0, false
	}
	term = r.CurrentTerm()
	index = r.CommitIndex()
	return index, term, r.State() == raft.Leader && r.CurrentTerm() == term
}

// Journal is the group's log: reads of a [Group] go there.
func (m *member) Journal() *storage.Journal { return m.journal }
