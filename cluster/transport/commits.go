package transport

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Committed says what a group's member knows to be committed: the entry and the member's term. leads is false if it did not
// lead in that term all the while. It must not wait for raft.
type Committed func() (index, term uint64, leads bool)

// TellCommitted has the group tell followers what is committed. By itself raft does so with the next entry, or with an
// empty request to each follower after each CommitTimeout, for ever: with that alone, idle groups cost the more the sooner
// followers are to hear. The group tells once, soon after the last entry was acknowledged, so CommitTimeout may be long.
func (g *Group) TellCommitted(c Committed) { g.committed.Store(&c) }

// commits are the groups in which a follower has acknowledged entries that it does not know to be committed.
type commits struct {
	t *Transport

	mu     sync.Mutex // guards all below
	groups map[*Group]struct{}
	timer  *time.Timer
}

// add has a group looked at soon.
func (c *commits) add(g *Group) {
	if g.committed.Load() == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups = map[*Group]struct{}{}
	}
	if c.groups[g] = struct{}{}; len(c.groups) > 1 {
		return
	}
	wait := c.t.o.soon()
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.tell)
		return
	}
	c.timer.Reset(wait)
}

// tell looks at the groups that were added since it did so last.
func (c *commits) tell() {
	if !c.t.enter() {
		return
	}
	defer c.t.running.Done()
	c.mu.Lock()
	groups := c.groups
	c.groups = nil
	c.mu.Unlock()
	for g := range groups {
		if g.tellCommitted() {
			c.add(g)
		}
	}
}

// tellCommitted tells those followers what is committed that acknowledged nothing since it was called last, and says
// whether there are others: they get it with the entries that they are being sent, or are looked at again.
func (g *Group) tellCommitted() (again bool) {
	b, committed := g.bound.Load(), g.committed.Load()
	if b == nil || committed == nil {
		return false
	}
	index, term, leads := (*committed)()
	if !leads {
		return false
	}
	due := map[raft.ServerID]ackOf{}
	g.mu.Lock()
	for id, a := range g.acked {
		switch {
		case a.term != term || a.commit >= a.prev:
		case a != g.looked[id] || a.commit >= index:
			again = true
		default:
			due[id] = a
		}
	}
	g.looked = maps.Clone(g.acked)
	g.mu.Unlock()
	if len(due) == 0 {
		return again
	}
	for _, s := range b.servers() {
		if a, ok := due[s.ID]; ok {
			g.sendCommitted(s, a, index)
		}
	}
	return again
}

// sendCommitted sends a follower the request that raft would: no entries after the last one it has acknowledged, which
// says what is committed. More than it has acknowledged is never said to be: raft believes it for whatever is in the log
// there. The answer is only noted, and raft does not hear of it.
func (g *Group) sendCommitted(to raft.Server, a ackOf, index uint64) {
	s, err := g.session(to.Address)
	if err != nil || g.flow(s.peer.id).out.Load() > 0 {
		return // whatever is acknowledged next has it looked at again; and raft sends its own
	}
	g.t.stats.told.Add(1)
	args := &raft.AppendEntriesRequest{Term: a.term, PrevLogEntry: a.prev, PrevLogTerm: a.prevTerm, LeaderCommitIndex: min(index, a.prev)}
	sending := &appending{g: g, s: s, to: to.ID, args: args, resp: &raft.AppendEntriesResponse{}, left: 1, ended: func(error) {}}
	sending.sendAll()
}
