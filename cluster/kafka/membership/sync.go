package membership

import (
	"context"
	"errors"
)

// Sync waits for the member's assignment. The leader's request brings it.
func (g *Group) Sync(ctx context.Context, s Sync) Synced {
	answer := make(chan Synced, 1)
	g.mu.Lock()
	now := g.sync(s, answer)
	k := g.toKeep(s)
	g.mu.Unlock()
	if now != nil {
		return *now
	}
	if k != nil {
		g.keepAndAssign(ctx, k, s.Assignments)
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		g.giveUpSync(s.MemberID, answer)
		return Synced{Err: ctx.Err()}
	}
}

func (g *Group) giveUpSync(id string, answer chan Synced) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, ok := g.members[id]; ok && m.syncing == answer {
		m.syncing = nil
		g.keep(m)
	}
}

func (g *Group) sync(s Sync, answer chan Synced) *Synced {
	m, err := g.current(s.MemberID, s.InstanceID)
	switch {
	case errors.Is(err, ErrUnknownMember) && s.Generation > g.generation && g.kept:
		return &Synced{Err: ErrRebalanceInProgress} // it joined at a former coordinator
	case err != nil:
		return &Synced{Err: err}
	case s.Generation != g.generation:
		return &Synced{Err: g.another(s.Generation)}
	case s.Type != "" && s.Type != g.kind, s.Protocol != "" && s.Protocol != g.protocol:
		return &Synced{Err: ErrInconsistentProtocol}
	}
	g.keep(m)
	switch g.state {
	case PreparingRebalance:
		return &Synced{Err: ErrRebalanceInProgress}
	case Stable:
		a := g.synced(m)
		return &a
	}
	m.answerSync(Synced{Err: ErrRebalanceInProgress}) // a former request of it
	m.syncing = answer
	if m.id == g.leader && g.keeper == nil {
		g.assign(s.Assignments)
	}
	return nil
}

// assign gives everyone what the leader decided. A member that is not named gets nothing.
func (g *Group) assign(assignments map[string][]byte) {
	g.stopDeadline()
	g.state = Stable
	for _, m := range g.members {
		m.assignment = assignments[m.id]
		if m.syncing != nil {
			g.keep(m)
			m.answerSync(g.synced(m))
		}
	}
	// Members that have not asked yet are kept by their sessions only.
}

func (g *Group) synced(m *member) Synced {
	return Synced{Type: g.kind, Protocol: g.protocol, Assignment: m.assignment}
}
