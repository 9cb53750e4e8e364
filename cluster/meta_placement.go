package cluster

import (
	"slices"
)

// Replica is a node's copy of a journal. Born tells copies apart that a node has had one after the other: a copy that was
// lost or given up is never taken for the one that comes after it. The first has 0.
type Replica struct {
	Node int32  `json:"node"`
	Born uint64 `json:"born,omitempty"`
}

// placeJournal says which nodes are to have a journal, the one that should lead it first.
type placeJournal struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Nodes   []int32  `json:"nodes"`
}

// replaceReplica puts a new copy in the place of one that is lost or not to be trusted, on the same node.
type replaceReplica struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Replica Replica  `json:"replica"`
}

// dropReplica says that a copy which was given up is out of its journal's group: its files may go.
type dropReplica struct {
	ID      StreamID `json:"id"`
	Journal int32    `json:"journal"`
	Replica Replica  `json:"replica"`
}

// trimStream makes offset the first of a partition that can be read, on all replicas.
type trimStream struct {
	ID        StreamID `json:"id"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
}

// replicas returns the copies that a journal is to have.
func (s *Stream) replicas(journal int32) []Replica {
	if int(journal) < len(s.Placement) {
		return s.Placement[journal]
	}
	return []Replica{{Node: foundingNode}} // it was created by a node alone
}

// founders are the nodes that a journal's group is begun with, the same ones on all.
func (s *Stream) founders(journal int32) []int32 {
	if int(journal) < len(s.Founders) {
		return s.Founders[journal]
	}
	return nodesOf(s.replicas(journal))
}

// leaving returns the copies that a journal is to lose and that its group may still count on.
func (s *Stream) leaving(journal int32) []Replica {
	if int(journal) < len(s.Leaving) {
		return s.Leaving[journal]
	}
	return nil
}

// uses says whether a node has a copy of any of the stream's journals.
func (s *Stream) uses(node int32) bool {
	for j := range s.Journals {
		if _, ok := find(s.replicas(j), node); ok {
			return true
		}
		if _, ok := find(s.leaving(j), node); ok {
			return true
		}
	}
	return false
}

// nodes are those that have a copy of any of the stream's journals.
func (s *Stream) nodes() (all []int32) {
	for j := range s.Journals {
		for _, r := range slices.Concat(s.replicas(j), s.leaving(j)) {
			if !slices.Contains(all, r.Node) {
				all = append(all, r.Node)
			}
		}
	}
	slices.Sort(all)
	return all
}

func find(replicas []Replica, node int32) (Replica, bool) {
	for _, r := range replicas {
		if r.Node == node {
			return r, true
		}
	}
	return Replica{}, false
}

func nodesOf(replicas []Replica) []int32 {
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
			c.Founders[j] = nodesOf(s.replicas(j))
		}
	}
	c.Placement, c.Leaving = make([][]Replica, s.Journals), make([][]Replica, s.Journals)
	for j := range s.Journals {
		c.Placement[j], c.Leaving[j] = slices.Clone(s.replicas(j)), slices.Clone(s.leaving(j))
	}
	return &c
}

func (m *Meta) placedStream(id StreamID, journal int32) (*Stream, error) {
	s, err := m.liveStream(id)
	if err != nil {
		return nil, err
	}
	if journal < 0 || journal >= s.Journals {
		return nil, ErrUnknownPartition
	}
	return s.replaced(), nil
}

func (m *Meta) placeJournal(c *placeJournal) result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return result{err: err}
	}
	if err := m.checkNodes(c.Nodes); err != nil {
		return result{err: err}
	}
	old := s.Placement[c.Journal]
	next := make([]Replica, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		r, ok := find(old, node)
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
	m.putStream(s)
	return result{value: s}
}

// checkNodes refuses a list of nodes that cannot have a journal between them.
func (m *Meta) checkNodes(nodes []int32) error {
	if len(nodes) == 0 {
		return ErrInvalidReplication
	}
	for i, node := range nodes {
		if _, ok := m.members[node]; !ok && (len(m.members) > 0 || node != foundingNode) {
			return ErrUnknownMember
		}
		if slices.Contains(nodes[:i], node) {
			return ErrInvalidReplication
		}
	}
	return nil
}

func (m *Meta) replaceReplica(c *replaceReplica) result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return result{err: err}
	}
	i := slices.Index(s.Placement[c.Journal], c.Replica)
	if i < 0 {
		return result{err: ErrConflict}
	}
	s.Births++
	s.Placement[c.Journal][i].Born = s.Births
	m.putStream(s)
	return result{value: s}
}

func (m *Meta) dropReplica(c *dropReplica) result {
	s, err := m.placedStream(c.ID, c.Journal)
	if err != nil {
		return result{err: err}
	}
	s.Leaving[c.Journal] = slices.DeleteFunc(s.Leaving[c.Journal], func(r Replica) bool { return r == c.Replica })
	m.putStream(s)
	return result{value: s}
}

func (m *Meta) trimStream(c *trimStream) result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return result{err: err}
	}
	if c.Partition < 0 || c.Partition >= old.Partitions {
		return result{err: ErrUnknownPartition}
	}
	s := *old
	s.Starts = make(map[int32]int64, len(old.Starts)+1)
	for p, at := range old.Starts {
		s.Starts[p] = at
	}
	s.Starts[c.Partition] = max(s.Starts[c.Partition], c.Offset)
	m.putStream(&s)
	return result{value: &s}
}

// confirmRemoval notes that a node has nothing of a deleted stream any more, and forgets the stream when none has.
func (m *Meta) confirmRemoval(s *Stream, node int32) {
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
