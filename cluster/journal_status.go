package cluster

import (
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// The states of a replica.
const (
	ReplicaLeads   = "leader"
	ReplicaInSync  = "in sync"
	ReplicaBehind  = "behind"  // it counts, and lacks more than is on its way at a time
	ReplicaJoining = "joining" // it gets what it lacks before it counts
	ReplicaLeaving = "leaving" // it is given up once the others count
	ReplicaDown    = "down"    // its node is
	ReplicaFailed  = "failed"  // it takes nothing any more
	ReplicaUnknown = "unknown" // its leader has not heard of it, or there is none
)

// JournalStatus is a journal of a stream, with its replicas.
type JournalStatus struct {
	Stream   string            `json:"stream"`
	StreamID metadata.StreamID `json:"stream_id"`
	Journal  int32             `json:"journal"`
	// Leader is the node that leads and serves it, -1 if none says so; Epoch is the highest that a copy knows.
	Leader int32  `json:"leader"`
	Epoch  uint64 `json:"epoch"`
	// Preferred is the node that should lead it.
	Preferred int32 `json:"preferred"`
	// Wanted is how many copies it is to have, InSync how many of these have all that the leader has, or nearly so.
	Wanted int `json:"wanted"`
	// Asked is Wanted, or more than that while there are not so many nodes.
	Asked  int  `json:"asked"`
	InSync int  `json:"in_sync"`
	Moving bool `json:"moving,omitempty"`

	Replicas []ReplicaStatus `json:"replicas"`
}

// ReplicaStatus is one copy of a journal.
type ReplicaStatus struct {
	Node  int32  `json:"node"`
	State string `json:"state"`
	// Entries and Bytes are what it lacks of what its leader has; -1 if that is not known.
	Entries int64  `json:"entries_behind"`
	Bytes   int64  `json:"bytes_behind"`
	Problem string `json:"problem,omitempty"`
	Doubt   string `json:"doubt,omitempty"`
}

// counts says whether the replica has everything, or nearly so.
func (r *ReplicaStatus) counts() bool { return r.State == ReplicaLeads || r.State == ReplicaInSync }

func (n *Node) journalStatus(s *metadata.Stream, journal int32, reports nodeReports) JournalStatus {
	key := metadata.StreamJournal{Stream: s.ID, Journal: journal}
	wanted, leaving := s.ReplicasOf(journal), s.LeavingOf(journal)
	j := JournalStatus{Stream: s.Name, StreamID: s.ID, Journal: journal, Leader: -1, Preferred: wanted[0].Node, Wanted: s.RoomFor(journal, n.Members()), Asked: s.WantedOf(journal), Moving: len(leaving) > 0}
	var leader *CopyReport
	for node, a := range reports {
		c := a.copies[key]
		if c == nil {
			continue
		}
		if c.Leads && (leader == nil || c.Term > leader.Term) { // who was deposed may not know it yet
			leader, j.Leader = c, node
		}
		j.Epoch = max(j.Epoch, c.Term)
	}
	for _, r := range wanted {
		status := n.replicaStatus(r, key, leader, j.Leader, reports)
		if status.counts() {
			j.InSync++
		}
		if status.State == ReplicaJoining {
			j.Moving = true
		}
		j.Replicas = append(j.Replicas, status)
	}
	for _, r := range leaving {
		if _, again := metadata.FindReplica(wanted, r.Node); again {
			continue // its node gets another copy
		}
		status := n.replicaStatus(r, key, leader, j.Leader, reports)
		if status.counts() && status.State != ReplicaLeads {
			status.State = ReplicaLeaving
		}
		j.Replicas = append(j.Replicas, status)
	}
	return j
}

// replicaStatus judges a copy by what its node says of it and what its leader does.
func (n *Node) replicaStatus(r metadata.Replica, key metadata.StreamJournal, leader *CopyReport, leads int32, reports nodeReports) ReplicaStatus {
	s := ReplicaStatus{Node: r.Node, State: ReplicaUnknown, Entries: -1, Bytes: -1}
	if a := reports[r.Node]; a != nil && a.copies[key] != nil {
		s.Problem, s.Doubt = a.copies[key].Problem, a.copies[key].Doubt
	}
	if leader != nil && leads == r.Node {
		s.State, s.Entries, s.Bytes = ReplicaLeads, 0, 0
		return s
	}
	if leader != nil {
		i := slices.IndexFunc(leader.Followers, func(f FollowerReport) bool { return f.Node == r.Node && f.Born == r.Born })
		switch {
		case i < 0:
			s.State = ReplicaJoining
		default:
			s.follow(leader.Followers[i])
		}
	}
	switch {
	case !n.Up(r.Node):
		s.State = ReplicaDown
	case s.Problem != "":
		s.State = ReplicaFailed
	}
	return s
}

// follow takes over what the leader says.
func (s *ReplicaStatus) follow(f FollowerReport) {
	if f.Known {
		s.Entries, s.Bytes = int64(f.Entries), int64(f.Bytes)
	}
	switch {
	case !f.Voter:
		s.State = ReplicaJoining
	case f.Near:
		s.State = ReplicaInSync
	case f.Known:
		s.State = ReplicaBehind
	}
}
