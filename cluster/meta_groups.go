package cluster

import (
	"context"
	"maps"
)

// keepGroup keeps who belongs to a consumer group, in the coordinator's own form, for the next coordinator; nothing
// forgets it.
type keepGroup struct {
	Group string `json:"group"`
	State []byte `json:"state,omitempty"`
	Term  uint64 `json:"term"` // as commitOffsets.Term
}

func (m *Meta) keepGroup(k *keepGroup) result {
	if len(k.State) == 0 {
		delete(m.kept, k.Group)
		return result{}
	}
	m.kept[k.Group] = k.State
	return result{}
}

// KeptGroups returns what coordinators have kept of consumer groups, by name. The values are not to be changed.
func (m *Meta) KeptGroups() map[string][]byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.kept)
}

// KeepGroup keeps who belongs to a group, for the next coordinator, and returns when that is durable. It takes effect only
// if no other one was elected since this one got its epoch, and is ErrNotCoordinator otherwise.
func (n *Node) KeepGroup(ctx context.Context, epoch uint64, group string, state []byte) error {
	if now, ok := n.Coordinator(); !ok || now != epoch {
		return ErrNotCoordinator
	}
	_, err := n.proposer.propose(ctx, command{KeepGroup: &keepGroup{Group: group, State: state, Term: epoch}})
	return err
}
