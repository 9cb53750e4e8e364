package cluster

import (
	"cmp"
	"maps"
	"slices"
)

// memberState is a node in the metadata.
type memberState struct {
	Member
	// Token is the random name of the node's directory: who asks to join again with it gets the same id.
	Token string `json:"token"`
}

// joinCluster makes a node a member, or returns the one that it is.
type joinCluster struct {
	Token   string `json:"token"`
	Address string `json:"address"`
	Rack    string `json:"rack,omitempty"`
}

// putMember changes what is known of a node.
type putMember struct {
	Member Member `json:"member"`
}

// leaveCluster begins to empty a node, or, if it is undone, ends that.
type leaveCluster struct {
	ID   int32 `json:"id"`
	Undo bool  `json:"undo,omitempty"`
}

// removeMember takes out a node that has no replicas any more.
type removeMember struct {
	ID int32 `json:"id"`
}

func (m *Meta) joinCluster(c *joinCluster) result {
	for _, old := range m.members {
		if old.Token == c.Token {
			return result{value: old.clone()}
		}
	}
	m.lastMember++
	s := &memberState{Member: Member{ID: m.lastMember, Address: c.Address, Rack: c.Rack}, Token: c.Token}
	m.members[s.ID] = s
	m.layoutChanged()
	return result{value: s.clone()}
}

func (m *Meta) putMember(c *putMember) result {
	old, ok := m.members[c.Member.ID]
	if !ok {
		return result{err: ErrUnknownMember}
	}
	s := &memberState{Member: c.Member.clone(), Token: old.Token}
	s.Leaving = old.Leaving
	m.members[s.ID] = s
	m.layoutChanged()
	return result{value: s.clone()}
}

func (m *Meta) leaveCluster(c *leaveCluster) result {
	old, ok := m.members[c.ID]
	if !ok {
		return result{err: ErrUnknownMember}
	}
	s := *old
	s.Leaving = !c.Undo
	m.members[c.ID] = &s
	m.layoutChanged()
	return result{}
}

func (m *Meta) removeMember(c *removeMember) result {
	if _, ok := m.members[c.ID]; !ok {
		return result{err: ErrUnknownMember}
	}
	for _, s := range m.byID {
		if !s.Deleting && s.uses(c.ID) {
			return result{err: ErrMemberInUse}
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
	return result{}
}

// Members returns the nodes of the cluster by their ids; none before the first that has a network.
func (m *Meta) Members() []Member {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]Member, 0, len(m.members))
	for _, s := range m.members {
		all = append(all, s.clone())
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// removed says whether a node was taken out. Of one that is not known yet it says no.
func (m *Meta) removed(id int32) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.members[id]
	return !ok && id > 0 && id <= m.lastMember
}

// member returns a node.
func (m *Meta) member(id int32) (Member, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.members[id]
	if !ok {
		return Member{}, false
	}
	return s.clone(), true
}

func (m *Meta) sortedMembers() (all []*memberState) {
	return slices.SortedFunc(maps.Values(m.members), func(a, b *memberState) int { return cmp.Compare(a.ID, b.ID) })
}
