package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// AddNonvoter adds a member that gets the log and has no vote. A voter stays one. Only the leader can.
func (m *member) AddNonvoter(id, address string, timeout time.Duration) error {
	return appendErr(m.await(m.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, timeout)))
}

// TransferTo hands the lead to a voter once it has the whole log, and returns when it was told to stand; "" is the
// voter that has most. Appends are refused with ErrNotLeader meanwhile. Only the leader can.
func (m *member) TransferTo(id string) error {
	if id == "" {
		return appendErr(m.await(m.raft.LeadershipTransfer()))
	}
	return appendErr(m.await(m.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id))))
}

// DemoteVoter takes a member's vote. Only the leader can.
func (m *member) DemoteVoter(id string, timeout time.Duration) error {
	return appendErr(m.await(m.raft.DemoteVoter(raft.ServerID(id), 0, timeout)))
}

// nearEntries is how many entries behind a member may be that gets a vote: what is on its way at a time.
const nearEntries = maxAppendEntries

// near says whether the member on a node has nearly all that this one, its leader, has.
func (m *member) near(node string) bool {
	g, ok := m.o.Transport.(interface {
		Acked(node string) (uint64, bool)
	})
	if !ok {
		return false
	}
	has, ok := g.Acked(node)
	return ok && has+nearEntries >= m.raft.LastIndex()
}

// await waits for what raft promised, or for its end: what is in raft's queue when it is shut down it never answers.
func (m *member) await(f raft.Future) error {
	answered := make(chan error, 1)
	go func() { answered <- f.Error() }() // ends with the answer; left behind, with nothing to do, if none comes
	select {
	case err := <-answered:
		return err
	case <-m.done:
	}
	select {
	case err := <-answered: // raft answers what it has begun before it ends
		return err
	default:
		return raft.ErrRaftShutdown
	}
}
