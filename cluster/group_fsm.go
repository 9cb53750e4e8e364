package cluster

import (
	"errors"
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
// and the journal starts anew there.
func (f journalFSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	state, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return f.journal.Reset(state)
}
