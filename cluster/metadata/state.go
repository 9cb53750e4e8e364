package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/hashicorp/raft"
)

// State is the state machine of the metadata group: streams, the offsets that
// consumer groups committed, producer ids, transactions, users and ACLs. It changes only by
// commands that come out of the group's Raft log, so that every member, and
// every later start, holds the same state.
//
// Methods are safe for concurrent use. What they return is either a copy or
// immutable: a *Stream is replaced, never changed.
type State struct {
	// fatal is the first entry that could not be understood. Nothing is applied
	// after it: state built over a hole would differ from the other members'.
	// Guarded by mu, as is all that follows.
	fatal error

	mu      sync.RWMutex
	streams map[string]*Stream   // by name; without those being deleted
	byID    map[StreamID]*Stream // with those being deleted

	groups       map[string]*groupOffsets
	kept         map[string][]byte // who belongs to a group, by its name
	transactions map[string]*Transaction
	users        map[string]*User
	acls         map[ACL]struct{}
	secret       string // hex; see Node.DecoySecret
	aclRevision  uint64 // not part of the state: it counts what this process has seen

	nextProducerID int64
	clusterID      string

	members    map[int32]*memberState
	lastMember int32              // the highest id that was given
	mirrored   uint64             // of an observer: up to where it has seen its cluster's metadata
	origins    map[int32]answered // by node
	applied    uint64             // the last entry whose commands the state has

	progress chan struct{} // closed when applied rises; nil: nobody waits
	layout   chan struct{} // closed when streams, placement or members change; nil: nobody waits
}

var _ raft.FSM = (*State)(nil)

// New returns the state before the first entry.
func New() *State {
	return &State{
		streams:        map[string]*Stream{},
		byID:           map[StreamID]*Stream{},
		groups:         map[string]*groupOffsets{},
		kept:           map[string][]byte{},
		transactions:   map[string]*Transaction{},
		users:          map[string]*User{},
		acls:           map[ACL]struct{}{},
		nextProducerID: 1,
		members:        map[int32]*memberState{},
		origins:        map[int32]answered{},
	}
}

// Apply runs the commands of one log entry and returns a []result, one for each
// command.
func (m *State) Apply(l *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fatal != nil {
		return m.fatal
	}
	e, err := decodeEntry(l.Data)
	if err != nil {
		m.fatal = fmt.Errorf("reading metadata entry %d: %w", l.Index, err)
		m.tellProgress()
		return m.fatal
	}
	defer m.moved(l)
	return m.applyEntry(e, l.Term)
}

// applyOne runs one command. A refusal (a name that is taken, a producer that
// is fenced) is an ordinary result and the same on every member.
func (m *State) applyOne(c Command, term uint64) Result {
	switch {
	case c.Found != nil:
		return m.found(c.Found)
	case c.CreateStream != nil:
		return m.createStream(c.CreateStream)
	case c.GrowStream != nil:
		return m.growStream(c.GrowStream)
	case c.ConfigureStream != nil:
		return m.configureStream(c.ConfigureStream)
	case c.TombstoneStream != nil:
		return m.tombstoneStream(c.TombstoneStream)
	case c.ForgetStream != nil:
		return m.forgetStream(c.ForgetStream)
	case c.CommitOffsets != nil:
		if fenced(c.CommitOffsets.Term, term) {
			return Result{Err: ErrNotCoordinator}
		}
		return m.commitOffsets(c.CommitOffsets)
	case c.DeleteOffsets != nil:
		if fenced(c.DeleteOffsets.Term, term) {
			return Result{Err: ErrNotCoordinator}
		}
		return m.deleteOffsets(c.DeleteOffsets)
	case c.DeleteGroup != nil:
		if fenced(c.DeleteGroup.Term, term) {
			return Result{Err: ErrNotCoordinator}
		}
		return m.deleteGroup(c.DeleteGroup)
	case c.KeepGroup != nil:
		if fenced(c.KeepGroup.Term, term) {
			return Result{Err: ErrNotCoordinator}
		}
		return m.keepGroup(c.KeepGroup)
	case c.ReserveProducerIDs != nil:
		return m.reserveProducerIDs(c.ReserveProducerIDs)
	case c.PutTransaction != nil:
		return m.putTransaction(c.PutTransaction)
	case c.JoinTransaction != nil:
		return m.joinTransaction(c.JoinTransaction)
	case c.ForgetTransaction != nil:
		return m.forgetTransaction(c.ForgetTransaction)
	case c.PendTxnOffsets != nil:
		if fenced(c.PendTxnOffsets.Coordinator, term) {
			return Result{Err: ErrNotCoordinator}
		}
		return m.pendTxnOffsets(c.PendTxnOffsets)
	case c.PutCredential != nil:
		return m.putCredential(c.PutCredential)
	case c.DeleteCredential != nil:
		return m.deleteCredential(c.DeleteCredential)
	case c.PutSecret != nil:
		return m.putSecret(c.PutSecret)
	case c.CreateACLs != nil:
		return m.createACLs(c.CreateACLs)
	case c.DeleteACLs != nil:
		return m.deleteACLs(c.DeleteACLs)
	}
	return m.applyLayout(c)
}

// fenced says that a coordinator's command came into the log under the next one. Without
// a term it is nobody's; an entry has none where the log is only looked at.
func fenced(coordinator, entry uint64) bool {
	return coordinator != 0 && entry != 0 && coordinator != entry
}

// applyLayout runs a command about nodes and placement.
func (m *State) applyLayout(c Command) Result {
	switch {
	case c.JoinCluster != nil:
		return m.joinCluster(c.JoinCluster)
	case c.PutMember != nil:
		return m.putMember(c.PutMember)
	case c.LeaveCluster != nil:
		return m.leaveCluster(c.LeaveCluster)
	case c.RemoveMember != nil:
		return m.removeMember(c.RemoveMember)
	case c.PlaceJournal != nil:
		return m.placeJournal(c.PlaceJournal)
	case c.ReplaceReplica != nil:
		return m.replaceReplica(c.ReplaceReplica)
	case c.DropReplica != nil:
		return m.dropReplica(c.DropReplica)
	case c.RecoverCluster != nil:
		return m.recoverCluster(c.RecoverCluster)
	case c.Mirror != nil:
		return m.mirrorStreams(c.Mirror)
	}
	// decodeEntry lets no empty command through.
	panic("metadata: metadata command without content")
}

// found names the cluster, once and for good.
func (m *State) found(c *Found) Result {
	if m.clusterID == "" {
		m.clusterID = c.ClusterID
	}
	return Result{Value: m.clusterID}
}

// ClusterID returns the name that the cluster got when it was founded.
func (m *State) ClusterID() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.clusterID
}

// Err reports why the metadata can no longer be used, or nil.
func (m *State) Err() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.fatal
}

// Snapshot returns the state as one encoded value: it is small (kilobytes a
// group), and a copy taken under the lock keeps Persist free of it.
func (m *State) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.fatal != nil {
		return nil, m.fatal
	}
	data, err := json.Marshal(m.image())
	if err != nil {
		return nil, fmt.Errorf("encoding metadata snapshot: %w", err)
	}
	return &snapshot{data: sealImage(data)}, nil
}

// Restore replaces the state by a snapshot's.
func (m *State) Restore(r io.ReadCloser) error {
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("reading metadata snapshot: %w", err)
	}
	var image image
	if data, err = openImage(data); err != nil {
		return fmt.Errorf("checking metadata snapshot: %w", err)
	}
	if err := strictjson.Decode(data, &image); err != nil {
		return fmt.Errorf("decoding metadata snapshot: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load(image)
	m.tellProgress()
	m.layoutChanged()
	return nil
}

// snapshot writes an encoded state to where Raft keeps snapshots.
type snapshot struct{ data []byte }

// Persist writes the snapshot; an error makes Raft keep the former one.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s.data); err != nil {
		return errors.Join(fmt.Errorf("writing metadata snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release has nothing to release.
func (s *snapshot) Release() {}
