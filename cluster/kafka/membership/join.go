package membership

import (
	"context"
	"slices"
	"time"
)

// Join makes the caller a member, or lets a member take part in the next
// generation, and waits until that generation has begun.
func (g *Group) Join(ctx context.Context, j Join) Joined {
	if j.Session < MinSession || j.Session > MaxSession {
		return Joined{Err: ErrInvalidSession}
	}
	if j.Rebalance <= 0 {
		j.Rebalance = j.Session // JoinGroup version 0 has no rebalance timeout
	}
	answer := make(chan Joined, 1)
	g.mu.Lock()
	id, now := g.join(j, answer)
	g.mu.Unlock()
	if now != nil {
		return *now
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		g.giveUpJoin(id, answer)
		return Joined{Err: ctx.Err()}
	}
}

// giveUpJoin is for a member whose connection ended while it waited. It stays a
// member until its session ends: it may come back for the answer.
func (g *Group) giveUpJoin(id string, answer chan Joined) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, ok := g.members[id]; ok && m.joining == answer {
		m.joining = nil
		g.keep(m)
	}
}

// join returns an answer at once, or makes the member wait on answer. It returns
// the member's id.
func (g *Group) join(j Join, answer chan Joined) (string, *Joined) {
	if g.closed {
		return "", &Joined{Err: ErrClosed}
	}
	if err := g.compatible(j); err != nil {
		return "", &Joined{Err: err, MemberID: j.MemberID}
	}
	g.kind = j.Type // the same as before unless the caller is alone
	if j.MemberID == "" {
		return g.joinNew(j, answer)
	}
	if t, ok := g.promised[j.MemberID]; ok {
		t.Stop()
		delete(g.promised, j.MemberID)
		return g.admit(newMember(j.MemberID, j), answer)
	}
	m, err := g.current(j.MemberID, j.InstanceID)
	if err != nil {
		return "", &Joined{Err: err, MemberID: j.MemberID}
	}
	return g.rejoin(m, j, answer)
}

// compatible refuses a member that shares no protocol with the others.
func (g *Group) compatible(j Join) error {
	if len(j.Protocols) == 0 || j.Type == "" {
		return ErrInconsistentProtocol
	}
	others := 0
	for id := range g.members {
		if id != j.MemberID && id != g.static[j.InstanceID] {
			others++
		}
	}
	if others == 0 {
		return nil
	}
	if j.Type != g.kind {
		return ErrInconsistentProtocol
	}
	shared := slices.ContainsFunc(j.Protocols, func(p Protocol) bool {
		for id, m := range g.members {
			if id != j.MemberID && id != g.static[j.InstanceID] && !m.supports(p.Name) {
				return false
			}
		}
		return true
	})
	if !shared {
		return ErrInconsistentProtocol
	}
	return nil
}

func (g *Group) joinNew(j Join, answer chan Joined) (string, *Joined) {
	if old, ok := g.members[g.static[j.InstanceID]]; ok && j.InstanceID != "" {
		return g.replace(old, j, answer)
	}
	if len(g.members)+len(g.promised) >= maxMembers {
		return "", &Joined{Err: ErrGroupFull}
	}
	id := newMemberID(j)
	if j.RequireID && j.InstanceID == "" {
		g.promised[id] = time.AfterFunc(j.Session, func() { g.breakPromise(id) })
		return id, &Joined{Err: ErrMemberIDRequired, MemberID: id}
	}
	return g.admit(newMember(id, j), answer)
}

func (g *Group) breakPromise(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.promised[id]; ok && !g.closed {
		delete(g.promised, id)
		g.maybeComplete()
	}
}

// admit takes in a new member and starts a rebalance for it.
func (g *Group) admit(m *member, answer chan Joined) (string, *Joined) {
	g.members[m.id] = m
	if m.instance != "" {
		g.static[m.instance] = m.id
	}
	m.joining = answer
	g.keep(m)
	g.early = g.early || g.state == Empty && g.delay > 0
	if g.state == PreparingRebalance {
		g.maybeComplete()
	} else {
		g.prepare()
	}
	return m.id, nil
}

// replace lets a static member that has restarted take its former place. While
// the group is stable and the member says what it said before, nothing needs to
// be assigned anew. In every other state the group rebalances: an assignment
// that is being made is for the id that is gone.
func (g *Group) replace(old *member, j Join, answer chan Joined) (string, *Joined) {
	wasLeader := g.leader == old.id
	m := newMember(newMemberID(j), j)
	m.assignment = old.assignment
	same := old.sameProtocols(j.Protocols)
	old.answerJoin(Joined{Err: ErrFencedInstance, MemberID: old.id})
	old.answerSync(Synced{Err: ErrFencedInstance})
	formerLeader := g.leader
	g.forget(old)
	g.members[m.id] = m
	g.static[m.instance] = m.id
	if wasLeader {
		g.leader = m.id
	}
	g.keep(m)
	if g.state == Stable && same {
		// A replaced leader must not assign anew: it takes the assignment it has. If it
		// cannot be told so, the answer names the leader by its former id.
		a := g.joined(m)
		if wasLeader {
			a.SkipAssignment = j.CanSkip
		}
		if !a.SkipAssignment {
			a.Leader, a.Members = formerLeader, nil
		}
		return m.id, &a
	}
	m.joining = answer
	if g.state == PreparingRebalance {
		g.maybeComplete()
	} else {
		g.prepare()
	}
	return m.id, nil
}

// rejoin is a member that asks again.
func (g *Group) rejoin(m *member, j Join, answer chan Joined) (string, *Joined) {
	same := m.sameProtocols(j.Protocols)
	g.keep(m)
	switch {
	case g.state == CompletingRebalance && same,
		g.state == Stable && same && g.leader != m.id:
		// It did not see the answer to its last join.
		m.update(j)
		a := g.joined(m)
		return m.id, &a
	}
	m.update(j)
	m.answerJoin(Joined{Err: ErrRebalanceInProgress, MemberID: m.id}) // a former request of it
	m.joining = answer
	if g.state == PreparingRebalance {
		g.maybeComplete()
	} else {
		g.prepare()
	}
	return m.id, nil
}

// joined is the answer to a member of the current generation.
func (g *Group) joined(m *member) Joined {
	a := Joined{
		MemberID: m.id, Generation: g.generation,
		Type: g.kind, Protocol: g.protocol, Leader: g.leader,
	}
	if m.id == g.leader {
		for _, other := range g.sorted() {
			a.Members = append(a.Members, Member{other.id, other.instance, other.metadata(g.protocol)})
		}
	}
	return a
}
