package kafka

import (
	"context"
	"encoding/json"
	"time"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

const (
	// forgetGroupsEvery is how often groups are looked for whose last member went without a word.
	forgetGroupsEvery = 30 * time.Second
	// mostKept bounds what is kept of a group: members of a larger one join again under another coordinator.
	mostKept = 1 << 20
)

// keepGroup makes the metadata keep who belongs to a group, or forget it (nil).
func (s *Server) keepGroup(ctx context.Context, epoch uint64, group string, k *membership.Kept) error {
	var state []byte
	if k != nil {
		var err error
		if state, err = json.Marshal(k); err != nil {
			return err
		}
		if len(state) > mostKept {
			state = nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	return s.node.KeepGroup(ctx, epoch, group, state)
}

// keptGroups returns what was kept. What this build does not understand counts as nothing: members join again.
func (s *Server) keptGroups() map[string]*membership.Kept {
	all := map[string]*membership.Kept{}
	for group, state := range s.node.Meta().KeptGroups() {
		var k membership.Kept
		if err := json.Unmarshal(state, &k); err == nil && len(k.Members) > 0 {
			all[group] = &k
		}
	}
	return all
}

// forgetGroups forgets what was kept of groups without members.
func (s *Server) forgetGroups(ctx context.Context) {
	for _, g := range s.groups.all() {
		g.ForgetIfEmpty(ctx)
	}
}
