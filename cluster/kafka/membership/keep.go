package membership

import (
	"context"
	"time"
)

// Kept is what outlives a coordinator: a generation that has its assignment.
type Kept struct {
	Generation int32        `json:"generation"`
	Type       string       `json:"type"`
	Protocol   string       `json:"protocol"`
	Leader     string       `json:"leader"`
	Members    []KeptMember `json:"members"`
}

// KeptMember is a member of a kept generation.
type KeptMember struct {
	ID         string        `json:"id"`
	InstanceID string        `json:"instance_id,omitempty"`
	ClientID   string        `json:"client_id,omitempty"`
	Host       string        `json:"host,omitempty"`
	Session    time.Duration `json:"session_ns"`
	Rebalance  time.Duration `json:"rebalance_ns"`
	Protocols  []Protocol    `json:"protocols"`
	Assignment []byte        `json:"assignment,omitempty"`
}

// Keeper keeps a generation, or forgets what was kept (nil), and returns when that is durable. It is called without the
// group's lock.
type Keeper func(context.Context, *Kept) error

// Restore returns a group with the members it had when it was kept. Their sessions begin now.
func Restore(k Kept, delay time.Duration, keep Keeper) *Group {
	g := New(delay, keep)
	g.state, g.generation, g.kind, g.protocol, g.leader, g.kept = Stable, k.Generation, k.Type, k.Protocol, k.Leader, true
	g.mu.Lock() // a session may end before all members are there
	defer g.mu.Unlock()
	for _, kept := range k.Members {
		m := &member{
			id: kept.ID, instance: kept.InstanceID, clientID: kept.ClientID, host: kept.Host,
			session: kept.Session, rebalance: kept.Rebalance, protocols: kept.Protocols, assignment: kept.Assignment,
		}
		g.members[m.id] = m
		if m.instance != "" {
			g.static[m.instance] = m.id
		}
		g.keep(m)
	}
	return g
}

// toKeep returns what has to be kept before the members get what their leader brings, nil if it is not the leader that
// asks, or not the time. The caller holds mu.
func (g *Group) toKeep(s Sync) *Kept {
	if g.keeper == nil || g.keeping || g.closed || g.state != CompletingRebalance || s.MemberID != g.leader || s.Generation != g.generation {
		return nil
	}
	if m := g.members[s.MemberID]; m == nil || m.syncing == nil {
		return nil // it was refused
	}
	g.keeping = true
	k := &Kept{Generation: g.generation, Type: g.kind, Protocol: g.protocol, Leader: g.leader}
	for _, m := range g.sorted() {
		k.Members = append(k.Members, KeptMember{
			ID: m.id, InstanceID: m.instance, ClientID: m.clientID, Host: m.host, Session: m.session, Rebalance: m.rebalance,
			Protocols: m.protocols, Assignment: s.Assignments[m.id],
		})
	}
	return k
}

// keepAndAssign keeps the generation, and then gives everyone what the leader decided, if nothing has changed meanwhile.
// Where it cannot be kept the leader is told, and tries again.
func (g *Group) keepAndAssign(ctx context.Context, k *Kept, assignments map[string][]byte) {
	err := g.keeper(ctx, k)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keeping = false
	if g.closed || g.state != CompletingRebalance || g.generation != k.Generation {
		return // who waits was answered
	}
	if err != nil {
		if m, ok := g.members[k.Leader]; ok {
			m.answerSync(Synced{Err: err})
		}
		return
	}
	g.kept = true
	g.assign(assignments)
}

// ForgetIfEmpty lets go of what was kept of a group that has no members any more. What cannot be forgotten now is when it is
// called again.
func (g *Group) ForgetIfEmpty(ctx context.Context) {
	g.mu.Lock()
	forget := g.kept && g.state == Empty && !g.closed
	g.kept = g.kept && !forget
	g.mu.Unlock()
	if !forget {
		return
	}
	if err := g.keeper(ctx, nil); err != nil {
		g.mu.Lock()
		g.kept = true
		g.mu.Unlock()
	}
}
