package status

import (
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// The states of a replica.
const (
	Leads   = "leader"
	InSync  = "in sync"
	Behind  = "behind"  // it counts, and lacks more than is on its way at a time
	Joining = "joining" // it gets what it lacks before it counts
	Leaving = "leaving" // it is given up once the others count
	Down    = "down"    // its node is
	Failed  = "failed"  // it takes nothing any more
	Unknown = "unknown" // its leader has not heard of it, or there is none
)

// Journal is a journal of a stream, with its replicas.
type Journal struct {
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

	Replicas []Replica `json:"replicas"`
}

// Replica is one copy of a journal.
type Replica struct {
	Node  int32  `json:"node"`
	State string `json:"state"`
	// Entries and Bytes are what it lacks of what its leader has; -1 if that is not known.
	Entries int64  `json:"entries_behind"`
	Bytes   int64  `json:"bytes_behind"`
	Problem string `json:"problem,omitempty"`
	Doubt   string `json:"doubt,omitempty"`
}

// counts says whether the replica has everything, or nearly so.
func (r *Replica) counts() bool { return r.State == Leads || r.State == InSync }

func (v *View) journal(s *metadata.Stream, journal int32) Journal {
	key := metadata.StreamJournal{Stream: s.ID, Journal: journal}
	wanted, leaving := s.ReplicasOf(journal), s.LeavingOf(journal)
	j := Journal{Stream: s.Name, StreamID: s.ID, Journal: journal, Leader: -1, Preferred: wanted[0].Node, Wanted: s.RoomFor(journal, v.Members), Asked: s.WantedOf(journal), Moving: len(leaving) > 0}
	var leader *Copy
	for node, copies := range v.copies {
		c := copies[key]
		if c == nil {
			continue
		}
		if c.Leads && (leader == nil || c.Term > leader.Term) { // who was deposed may not know it yet
			leader, j.Leader = c, node
		}
		j.Epoch = max(j.Epoch, c.Term)
	}
	for _, r := range wanted {
		status := v.replica(r, key, leader, j.Leader)
		if status.counts() {
			j.InSync++
		}
		if status.State == Joining {
			j.Moving = true
		}
		j.Replicas = append(j.Replicas, status)
	}
	for _, r := range leaving {
		if _, again := metadata.FindReplica(wanted, r.Node); again {
			continue // its node gets another copy
		}
		status := v.replica(r, key, leader, j.Leader)
		if status.counts() && status.State != Leads {
			status.State = Leaving
		}
		j.Replicas = append(j.Replicas, status)
	}
	return j
}

// replica judges a copy by what its node says of it and what its leader does.
func (v *View) replica(r metadata.Replica, key metadata.StreamJournal, leader *Copy, leads int32) Replica {
	s := Replica{Node: r.Node, State: Unknown, Entries: -1, Bytes: -1}
	if c := v.copies[r.Node][key]; c != nil {
		s.Problem, s.Doubt = c.Problem, c.Doubt
	}
	if leader != nil && leads == r.Node {
		s.State, s.Entries, s.Bytes = Leads, 0, 0
		return s
	}
	if leader != nil {
		i := slices.IndexFunc(leader.Followers, func(f Follower) bool { return f.Node == r.Node && f.Born == r.Born })
		switch {
		case i < 0:
			s.State = Joining
		default:
			s.follow(leader.Followers[i])
		}
	}
	switch {
	case !v.Up(r.Node):
		s.State = Down
	case s.Problem != "":
		s.State = Failed
	}
	return s
}

// follow takes over what the leader says.
func (s *Replica) follow(f Follower) {
	if f.Known {
		s.Entries, s.Bytes = int64(f.Entries), int64(f.Bytes)
	}
	switch {
	case !f.Voter:
		s.State = Joining
	case f.Near:
		s.State = InSync
	case f.Known:
		s.State = Behind
	}
}
