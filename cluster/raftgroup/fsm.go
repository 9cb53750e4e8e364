package raftgroup

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// journalFSM is the state machine of a group whose log is the data: applying an entry makes it readable.
type journalFSM struct{ journal *storage.Journal }

var _ raft.BatchingFSM = journalFSM{}

// Apply implements raft.FSM.
func (f journalFSM) Apply(l *raft.Log) any {
	f.journal.Commit(l.Index)
	return nil
}

// ApplyBatch implements raft.BatchingFSM.
func (f journalFSM) ApplyBatch(logs []*raft.Log) []any {
	f.journal.Commit(logs[len(logs)-1].Index)
	return make([]any, len(logs))
}

// errNoSnapshot refuses what would cut the data away.
var errNoSnapshot = errors.New("a journal's log is its data: it has no snapshots")

// Snapshot implements raft.FSM.
func (f journalFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, errNoSnapshot }

// Restore implements raft.FSM: a leader that no longer has what this replica lacks sent the state at its log's front,
// and the journal starts anew there. It does not if it has that front: transport.Settled keeps such a snapshot from raft, and
// who gets here all the same is refused.
func (f journalFSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	state, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	had, err := f.journal.LastIndex()
	if err != nil {
		return err
	}
	if err := f.journal.Reset(state); err != nil {
		return err
	}
	if at := f.journal.Front().Index; had > at {
		// Raft 1.8.0 keeps its old last index through this, refuses every entry that follows and is sent the snapshot
		// for ever. A new instance over the journal, which is in order, does not.
		err := fmt.Errorf("%w: a leader's log begins at entry %d, this one's ended at %d and was never committed; it was given up", ErrReopen, at+1, had)
		f.journal.Fail(err)
		return err
	}
	return nil
}

// ErrReopen ends a group that is in order, but has to be closed and opened again to go on.
var ErrReopen = errors.New("group has to be opened again")
