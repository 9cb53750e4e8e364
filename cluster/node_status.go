package cluster

import (
	"context"

	"github.com/hashicorp/raft"
)

// ClusterStatus is the state of the cluster as a node sees it.
type ClusterStatus struct {
	// Controller leads the metadata; -1 if nobody is known to.
	Controller int32 `json:"controller"`
	// Voters are the nodes that elect it.
	Voters  []int32        `json:"voters"`
	Members []MemberStatus `json:"members"`
}

// MemberStatus is a node and whether it is there.
type MemberStatus struct {
	Member
	Up bool `json:"up"`
}

// Status returns the state of the cluster.
func (n *Node) Status(ctx context.Context) (ClusterStatus, error) {
	if err := n.SyncMeta(ctx); err != nil {
		return ClusterStatus{}, err
	}
	s := ClusterStatus{Controller: n.Controller()}
	for _, server := range n.metaGroup.servers() {
		if server.Suffrage == raft.Voter {
			s.Voters = append(s.Voters, nodeID(server.Address))
		}
	}
	for _, m := range n.Members() {
		s.Members = append(s.Members, MemberStatus{m, n.Up(m.ID)})
	}
	return s, nil
}
