package metadata

import (
	"cmp"
	"slices"
)

// Replica is a node's copy of a journal. Born tells copies apart that a node has had one after the other: a copy that was
// lost or given up is never taken for the one that comes after it. The first has 0.
type Replica struct {
	Node int32  `json:"node"`
	Born uint64 `json:"born,omitempty"`
}

// PlaceJournal says which nodes are to have a journal, the one that should lead it first.
type PlaceJournal struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Nodes   []int32  `json:"nodes"`
	// Wanted is how many copies it is to have, if that is not as many as there are nodes.
	Wanted int32 `json:"wanted,omitempty"`
}

// ReplaceReplica puts a new copy in the place of one that is lost or not to be trusted, on the same node.
type ReplaceReplica struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Replica Replica  `json:"replica"`
}

// DropReplica says that a copy which was given up is out of its journal's group: its files may go.
type DropReplica struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Replica Replica  `json:"replica"`
}

// ReplicasOf returns the copies that a journal is to have.
func (s *Stream) ReplicasOf(journal int32) []Replica {
	if int(journal) < len(s.Placement) {
		return s.Placement[journal]
	}
	return []Replica{{Node: FoundingNode}} // it was created by a node alone
}

// FoundersOf are the nodes that a journal's group is begun with, the same ones on all.
func (s *Stream) FoundersOf(journal int32) []int32 {
	if int(journal) < len(s.Founders) {
		return s.Founders[journal]
	}
	return NodesOf(s.ReplicasOf(journal))
}

// LeavingOf returns the copies that a journal is to lose and that its group may still count on.
func (s *Stream) LeavingOf(journal int32) []Replica {
	if int(journal) < len(s.Leaving) {
		return s.Leaving[journal]
	}
	return nil
}

// Uses says whether a node has a copy of any of the stream's journals.
func (s *Stream) Uses(node int32) bool {
	for j := range s.Journals {
		if _, ok := FindReplica(s.ReplicasOf(j), node); ok {
			return true
		}
		if _, ok := FindReplica(s.LeavingOf(j), node); ok {
			return true
		}
	}
	return false
}

// nodes are those that have a copy of any of the stream's journals.
func (s *Stream) nodes() (all []int32) {
	for j := range s.Journals {
		for _, r := range slices.Concat(s.ReplicasOf(j), s.LeavingOf(j)) {
			if !slices.Contains(all, r.Node) {
				all = append(all, r.Node)
			}
		}
	}
	slices.Sort(all)
	return all
}

// FindReplica returns the replica that a node has.
func FindReplica(replicas []Replica, node int32) (Replica, bool) {
	for _, r := range replicas {
		if r.Node == node {
			return r, true
		}
	}
	return Replica{}, false
}

// NodesOf returns the nodes that have the replicas, in their order.
func NodesOf(replicas []Replica) []int32 {
	ids := make([]int32, len(replicas))
	for i, r := range replicas {
		ids[i] = r.Node
	}
	return ids
}

// replaced returns a copy of the stream whose placement can be changed.
func (s *Stream) replaced() *Stream {
	c := *s
	if s.Founders == nil {
		c.Founders = make([][]int32, s.Journals)
		for j := range s.Journals {
			c.Founders[j] = NodesOf(s.ReplicasOf(j))
		}
	}
	c.Placement, c.Leaving = make([][]Replica, s.Journals), make([][]Replica, s.Journals)
	for j := range s.Journals {
		c.Placement[j], c.Leaving[j] = slices.Clone(s.ReplicasOf(j)), slices.Clone(s.LeavingOf(j))
	}
	return &c
}

func (m *State) placedStream(id StreamID, journal int32) (*Stream, error) {
	s, err := m.liveStream(id)
	if err != nil {
		return nil, err
	}
	if journal < 0 || journal >= s.Journals {
		return nil, ErrUnknownPartition
	}
	return s.replaced(), nil
}

func (m *State) placeJournal(c *PlaceJournal) Result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return Result{Err: err}
	}
	if err := m.checkNodes(c.Nodes); err != nil {
		return Result{Err: err}
	}
	old := s.Placement[c.Journal]
	next := make([]Replica, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		r, ok := FindReplica(old, node)
		if !ok {
			s.Births++
			r = Replica{Node: node, Born: s.Births}
		}
		next = append(next, r)
	}
	for _, r := range old {
		if !slices.Contains(next, r) {
			s.Leaving[c.Journal] = append(s.Leaving[c.Journal], r)
		}
	}
	s.Placement[c.Journal] = next
	s.want(c.Journal, cmp.Or(c.Wanted, int32(len(next))))
	m.putStream(s)
	return Result{Value: s}
}

// checkNodes refuses a list of nodes that cannot have a journal between them.
func (m *State) checkNodes(nodes []int32) error {
	if len(nodes) == 0 {
		return ErrInvalidReplication
	}
	for i, node := range nodes {
		if _, ok := m.members[node]; !ok && (len(m.members) > 0 || node != FoundingNode) {
			return ErrUnknownMember
		}
		if slices.Contains(nodes[:i], node) {
			return ErrInvalidReplication
		}
	}
	return nil
}

func (m *State) replaceReplica(c *ReplaceReplica) Result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return Result{Err: err}
	}
	i := slices.Index(s.Placement[c.Journal], c.Replica)
	if i < 0 {
		return Result{Err: ErrConflict}
	}
	s.Births++
	s.Placement[c.Journal][i].Born = s.Births
	m.putStream(s)
	return Result{Value: s}
}

func (m *State) dropReplica(c *DropReplica) Result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return Result{Err: err}
	}
	s.Leaving[c.Journal] = slices.DeleteFunc(s.Leaving[c.Journal], func(r Replica) bool { return r == c.Replica })
	m.putStream(s)
	return Result{Value: s}
}

// confirmRemoval notes that a node has nothing of a deleted stream any more, and forgets the stream when none has.
func (m *State) confirmRemoval(s *Stream, node int32) {
	next := *s
	next.Removed = append(slices.Clone(s.Removed), node)
	for _, id := range next.nodes() {
		if _, member := m.members[id]; member && !slices.Contains(next.Removed, id) {
			m.byID[s.ID] = &next
			return
		}
	}
	delete(m.byID, s.ID)
}
