package sim_test

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// state is the state machine of a command group: what was applied, how often, and in which order. It lives as long as its
// process.
type state struct {
	mu   sync.Mutex // guards all below
	data stateData
}

type stateData struct {
	Index   uint64
	Sum     uint64 // of all commands in their order
	Applied map[string]int
}

var _ raft.FSM = (*state)(nil)

func newState() *state { return &state{data: stateData{Applied: map[string]int{}}} }

// Apply implements raft.FSM. Its answer is how often the command was applied.
func (s *state) Apply(l *raft.Log) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write(l.Data)
	s.data.Index, s.data.Sum = l.Index, s.data.Sum*1099511628211+h.Sum64()
	s.data.Applied[string(l.Data)]++
	return s.data.Applied[string(l.Data)]
}

// Snapshot implements raft.FSM.
func (s *state) Snapshot() (raft.FSMSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(s.data)
	return encoded(b), err
}

// Restore implements raft.FSM.
func (s *state) Restore(r io.ReadCloser) error {
	defer r.Close()
	var d stateData
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = d
	return nil
}

// of is how often a command was applied.
func (s *state) of(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Applied[command]
}

// sum is what two members that have applied the same have in common.
func (s *state) sum() (index, sum uint64, commands int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Index, s.data.Sum, len(s.data.Applied)
}

type encoded []byte

// Persist implements raft.FSMSnapshot.
func (e encoded) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(e); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (encoded) Release() {}
