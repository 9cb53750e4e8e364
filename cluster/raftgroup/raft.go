package raftgroup

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

// maxAppendEntries bounds the entries raft stores, sends and applies at a time. Proposals in flight must not be more
// (raft's pipeline sends one request for each wake-up).
const maxAppendEntries = transport.MaxEntries

// baseConfig is what groups of both kinds have in common.
func baseConfig(o Options) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(o.ID)
	c.HeartbeatTimeout = o.Timeout
	c.ElectionTimeout = o.Timeout
	// Raft's lease makes a leader step down that hears from no majority; what it answers readers it confirms by a round. As
	// heartbeats are seldom and wait for each other, and machines are busy, it is as long as raft allows.
	c.LeaderLeaseTimeout = o.Timeout
	c.CommitTimeout = o.CommitEvery
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.NoLegacyTelemetry = true
	// A leader that is taken out of its group follows. If raft ended by itself, what it is given after that was never answered.
	c.ShutdownOnRemove = false
	c.Logger = &raftLogger{to: o.Logger, args: []any{"dir", o.Dir}}
	return c
}

// journalConfig is raft's configuration over a log that is the data: nothing but retention may ever shorten it, so
// automatic snapshots are off twice over.
func journalConfig(o Options) *raft.Config {
	c := baseConfig(o)
	c.SnapshotThreshold = math.MaxUint64
	c.TrailingLogs = math.MaxUint64
	c.SnapshotInterval = 10000 * time.Hour
	c.NoSnapshotRestoreOnStart = true
	return c
}

// store is a group's journal as raft sees it. Raft panics, and with it the process, when a vote cannot be stored or an
// entry not be read. The journal has then failed and the group is being shut down, so the goroutine that asked ends
// instead, before it can act on the error: the other groups of the process go on.
type store struct {
	*storage.Journal
	snapshots *fileSnapshots // nil: the log is the data
	started   atomic.Bool    // raft runs, so calls come from its goroutines
	mayVote   func() bool    // whether a vote may be stored
	outcast   error          // refuses all entries
	applied   func() uint64  // the last entry in the state machine
	leading   func() bool    // whether raft is a leader, which sends what it gets from here; once started

	onAppend  func()            // told before entries are appended; nil: nobody asks
	onRefused func([]*raft.Log) // told of entries that came damaged; nil: nobody asks

	mu  sync.Mutex
	err error // the first error; guarded by mu
}

var (
	_ raft.LogStore          = (*store)(nil)
	_ raft.StableStore       = (*store)(nil)
	_ raft.MonotonicLogStore = (*store)(nil)
)

func (s *store) firstErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stopOn ends raft's goroutine if err is one that raft would panic on.
func (s *store) stopOn(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	if s.started.Load() {
		s.Journal.Fail(err)
		runtime.Goexit() // raft starts its goroutines so that deferred calls tell it of the end
	}
	return err
}

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(logs []*raft.Log) error {
	if s.outcast != nil {
		return s.outcast
	}
	if s.onAppend != nil {
		s.onAppend()
	}
	err := s.Journal.StoreLogs(logs)
	if errors.Is(err, storage.ErrDamagedFrame) && s.onRefused != nil {
		s.onRefused(logs)
	}
	return err
}

// Received implements transport.Journal.
func (s *store) Received(frames []byte, first uint64) ([]*raft.Log, error) {
	logs, err := s.Journal.Received(frames, first)
	if errors.Is(err, storage.ErrDamagedFrame) && s.onRefused != nil {
		s.onRefused(append(logs, &raft.Log{Index: first + uint64(len(logs))}))
	}
	return logs, err
}

// Anchor implements transport.Journal: what this member's own snapshots end with comes in place of what its log had.
func (s *store) Anchor(index, term uint64) (at, of uint64, ok bool) {
	if at, of, ok = s.Journal.Anchor(index, term); ok || s.snapshots == nil {
		return at, of, ok
	}
	own := s.snapshots.newest.Load()
	if own == nil || own.Index < index || own.Index == index && own.Term != term {
		return 0, 0, false
	}
	return own.Index, own.Term, true
}

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	err := s.Journal.GetLog(index, l)
	var d *storage.DamageError
	if err == raft.ErrLogNotFound || errors.As(err, &d) && s.isOutlived(index) {
		return s.snapshotted(index, l)
	}
	return s.stopOn(err)
}

// snapshotted is GetLog for an entry that the log has no more. Of what the newest snapshot ends with a follower is asked for
// the term, to see whether it agrees with the leader up to there: raft itself takes that from the snapshot only where nothing
// lies behind, and would be sent the same place for ever. A leader would send the entry; it finds none, and sends the snapshot.
func (s *store) snapshotted(index uint64, l *raft.Log) error {
	if s.snapshots == nil || !s.started.Load() || s.leading() {
		return raft.ErrLogNotFound
	}
	own := s.snapshots.newest.Load()
	if own == nil || own.Index != index {
		return raft.ErrLogNotFound
	}
	*l = raft.Log{Index: index, Term: own.Term, Type: raft.LogNoop}
	return nil
}

// isOutlived says whether the log is one of commands and an entry of it is applied: what it did is in the state, of which
// the journal's owner takes a snapshot when damage is met. Raft asks for such an entry only to send it.
func (s *store) isOutlived(index uint64) bool {
	return s.snapshots != nil && s.applied != nil && index <= s.applied()
}

// Set implements raft.StableStore.
func (s *store) Set(key, value []byte) error {
	if isVote(key) && !s.mayVote() {
		return errInDoubt // raft goes on without having voted
	}
	return s.stopOn(s.Journal.Set(key, value))
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(key []byte, value uint64) error {
	if isVote(key) && !s.mayVote() {
		return errInDoubt
	}
	return s.stopOn(s.Journal.SetUint64(key, value))
}
