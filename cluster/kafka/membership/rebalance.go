package membership

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// prepare begins a rebalance: all members must join again. They learn it from
// their next heartbeat, and have as long as the most patient of them allows.
func (g *Group) prepare() {
	for _, m := range g.members {
		if m.syncing != nil {
			g.keep(m)
		}
		m.answerSync(Synced{Err: ErrRebalanceInProgress})
	}
	g.state = PreparingRebalance
	if len(g.members) == 0 {
		g.complete()
		return
	}
	if g.early {
		g.wait(g.delay, func() { g.early = false; g.extend() })
		return
	}
	g.extend()
}

// extend lets the rebalance wait for its members, or ends it if all are there.
func (g *Group) extend() {
	g.wait(g.patience(), g.complete)
	g.maybeComplete()
}

func (g *Group) patience() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// wait runs f, with the lock held, after d unless the deadline is set anew.
func (g *Group) wait(d time.Duration, f func()) {
	g.stopDeadline()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed && g.deadline == timer {
			f()
		}
	})
	g.deadline = timer
}

// maybeComplete ends the rebalance if nobody is missing.
func (g *Group) maybeComplete() {
	if g.state != PreparingRebalance || g.early || len(g.promised) > 0 {
		return
	}
	for _, m := range g.members {
		if m.joining == nil {
			return
		}
	}
	g.complete()
}

// complete ends the rebalance with those who have joined. The others are out,
// unless it is static: such a member keeps its place until its session ends.
func (g *Group) complete() {
	g.stopDeadline()
	g.early = false
	joined := 0
	for _, m := range g.sorted() {
		switch {
		case m.joining != nil:
			joined++
		case m.instance == "":
			g.forget(m)
		}
	}
	if joined == 0 && len(g.members) > 0 {
		// Only absent static members are left: nobody could assign. Wait on.
		g.wait(g.patience(), g.complete)
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.kind, g.protocol, g.leader = "", "", ""
		g.state = Empty
		return
	}
	g.elect()
	g.protocol = g.vote()
	g.state = CompletingRebalance
	for _, m := range g.sorted() {
		m.assignment = nil
		if m.joining != nil {
			g.keep(m)
			m.answerJoin(g.joined(m))
		}
	}
	g.wait(g.patience(), g.dropUnsynced)
}

// elect keeps the leader if it has joined, else takes the first who has.
func (g *Group) elect() {
	if m, ok := g.members[g.leader]; ok && m.joining != nil {
		return
	}
	for _, m := range g.sorted() {
		if m.joining != nil {
			g.leader = m.id
			return
		}
	}
}

// vote chooses the protocol that most members prefer among those that all
// support. compatible has seen to it that there is one.
func (g *Group) vote() string {
	votes := map[string]int{}
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.allSupport(p.Name) {
				votes[p.Name]++
				break
			}
		}
	}
	if len(votes) == 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(votes)), func(a, b string) int {
		return cmp.Compare(votes[a], votes[b])
	})
}

func (g *Group) allSupport(protocol string) bool {
	for _, m := range g.members {
		if !m.supports(protocol) {
			return false
		}
	}
	return true
}

// dropUnsynced removes members that took part in the generation but never came
// for their assignment, the leader above all, and begins anew.
func (g *Group) dropUnsynced() {
	g.deadline = nil
	if g.state != CompletingRebalance {
		return
	}
	for _, m := range g.sorted() {
		if m.syncing == nil {
			g.forget(m)
		}
	}
	g.prepare()
}
