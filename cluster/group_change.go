package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// AddNonvoter adds a member that gets the log and has no vote. A voter stays one. Only the leader can.
func (m *member) AddNonvoter(id, address string, timeout time.Duration) error {
	return appendErr(m.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, timeout).Error())
}

// TransferTo hands the lead to a voter once it has the whole log, and returns when it was told to stand; "" is the
// voter that has most. Appends are refused with ErrNotLeader meanwhile. Only the leader can.
func (m *member) TransferTo(id string) error {
	if id == "" {
		return appendErr(m.raft.LeadershipTransfer().Error())
	}
	return appendErr(m.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id)).Error())
}
