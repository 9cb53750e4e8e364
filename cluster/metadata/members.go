package metadata

import (
	"cmp"
	"maps"
	"slices"
)

// Member is a node of the cluster, as the metadata knows it.
type Member struct {
	ID int32 `json:"id"`
	// Address is where other nodes reach it; empty for a node without a network.
	Address string `json:"address,omitempty"`
	Rack    string `json:"rack,omitempty"`
	// Listeners are the addresses for Kafka clients, by the listener's name.
	Listeners map[string]string `json:"listeners,omitempty"`
	// Leaving says that it is being emptied, to be taken out.
	Leaving bool `json:"leaving,omitempty"`
}

// clone returns a copy that shares nothing.
func (m Member) clone() Member {
	m.Listeners = maps.Clone(m.Listeners)
	return m
}

// FoundingNode is the id of the node that founds a cluster, and of one that has no network.
const FoundingNode int32 = 1

// memberState is a node in the metadata.
type memberState struct {
	Member
	// Token is the random name of the node's directory: who asks to join again with it gets the same id.
	Token string `json:"token"`
}

// JoinCluster makes a node a member, or returns the one that it is.
type JoinCluster struct {
	Token   string `json:"token"`
	Address string `json:"address"`
	Rack    string `json:"rack,omitempty"`
}

// PutMember changes what is known of a node.
type PutMember struct {
	Member Member `json:"member"`
}

// LeaveCluster begins to empty a node, or, if it is undone, ends that.
type LeaveCluster struct {
	ID   int32 `json:"id"`
	Undo bool  `json:"undo,omitempty"`
}

// RemoveMember takes out a node that has no replicas any more.
type RemoveMember struct {
	ID int32 `json:"id"`
}

func (m *State) joinCluster(c *JoinCluster) Result {
	for _, old := range m.members {
		if old.Token == c.Token {
			return Result{Value: old.clone()}
		}
	}
	m.lastMember++
	s := &memberState{Member: Member{ID: m.lastMember, Address: c.Address, Rack: c.Rack}, Token: c.Token}
	m.members[s.ID] = s
	m.layoutChanged()
	return Result{Value: s.clone()}
}

func (m *State) putMember(c *PutMember) Result {
	old, ok := m.members[c.Member.ID]
	if !ok {
		return Result{Err: ErrUnknownMember}
	}
	s := &memberState{Member: c.Member.clone(), Token: old.Token}
	s.Leaving = old.Leaving
	m.members[s.ID] = s
	m.layoutChanged()
	return Result{Value: s.clone()}
}

func (m *State) leaveCluster(c *LeaveCluster) Result {
	old, ok := m.members[c.ID]
	if !ok {
		return Result{Err: ErrUnknownMember}
	}
	s := *old
	s.Leaving = !c.Undo
	m.members[c.ID] = &s
	m.layoutChanged()
	return Result{}
}

func (m *State) removeMember(c *RemoveMember) Result {
	if _, ok := m.members[c.ID]; !ok {
		return Result{Err: ErrUnknownMember}
	}
	for _, s := range m.byID {
		if !s.Deleting && s.Uses(c.ID) {
			return Result{Err: ErrMemberInUse}
		}
	}
	delete(m.members, c.ID)
	delete(m.origins, c.ID)
	for _, s := range m.byID {
		if s.Deleting {
			m.confirmRemoval(s, c.ID)
		}
	}
	m.layoutChanged()
	return Result{}
}

// Members returns the nodes of the cluster by their ids; none before the first that has a network.
func (m *State) Members() []Member {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]Member, 0, len(m.members))
	for _, s := range m.members {
		all = append(all, s.clone())
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Removed says whether a node was taken out. Of one that is not known yet it says no.
func (m *State) Removed(id int32) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.members[id]
	return !ok && id > 0 && id <= m.lastMember
}

// Member returns a node.
func (m *State) Member(id int32) (Member, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.members[id]
	if !ok {
		return Member{}, false
	}
	return s.clone(), true
}

func (m *State) sortedMembers() (all []*memberState) {
	return slices.SortedFunc(maps.Values(m.members), func(a, b *memberState) int { return cmp.Compare(a.ID, b.ID) })
}
