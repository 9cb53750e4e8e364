package metadata

// MirrorStreams brings an observer's metadata to what its cluster has. Several may make one change: then the last one says
// up to where the cluster's metadata was seen, so that what is older is told when it comes later.
type MirrorStreams struct {
	Applied uint64       `json:"applied,omitempty"`
	Gone    []StreamID   `json:"gone,omitempty"`
	Put     []*Stream    `json:"put,omitempty"`
	Access  *accessImage `json:"access,omitempty"`
}

// accessImage is who may do what.
type accessImage struct {
	Users []*User `json:"users,omitempty"`
	ACLs  []ACL   `json:"acls,omitempty"`
}

func (m *State) mirrorStreams(c *MirrorStreams) Result {
	if c.Applied != 0 && c.Applied < m.mirrored {
		return Result{Err: ErrConflict}
	}
	for _, id := range c.Gone {
		m.bury(id)
	}
	for _, s := range c.Put {
		if old, ok := m.byID[s.ID]; ok && old.Deleting {
			continue // an id does not come back
		}
		if other, taken := m.streams[s.Name]; taken && other.ID != s.ID {
			m.bury(other.ID)
		}
		m.putStream(s)
	}
	if c.Access != nil {
		m.users, m.acls = map[string]*User{}, map[ACL]struct{}{}
		for _, u := range c.Access.Users {
			m.users[u.Name] = u
		}
		for _, a := range c.Access.ACLs {
			m.acls[a] = struct{}{}
		}
		m.aclRevision++
	}
	m.mirrored = max(m.mirrored, c.Applied)
	return Result{}
}

// bury takes a stream's name away, if there is such a stream; its files go afterwards.
func (m *State) bury(id StreamID) { m.tombstoneStream(&TombstoneStream{id}) }

// Mirrored is up to which entry of its cluster's metadata an observer has seen it; 0 elsewhere.
func (m *State) Mirrored() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mirrored
}
