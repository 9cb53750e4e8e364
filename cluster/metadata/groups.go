package metadata

import (
	"maps"
)

// KeepGroup keeps who belongs to a consumer group, in the coordinator's own form, for the next coordinator; nothing
// forgets it.
type KeepGroup struct {
	Group string `json:"group"`
	State []byte `json:"state,omitempty"`
	Term  uint64 `json:"term"` // as CommitOffsets.Term
}

func (m *State) keepGroup(k *KeepGroup) Result {
	if len(k.State) == 0 {
		delete(m.kept, k.Group)
		return Result{}
	}
	m.kept[k.Group] = k.State
	return Result{}
}

// KeptGroups returns what coordinators have kept of consumer groups, by name. The values are not to be changed.
func (m *State) KeptGroups() map[string][]byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.kept)
}
