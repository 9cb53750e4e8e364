package transport

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Failover has the local members of the groups that a node led stand for election: it said itself that it cannot lead.
func (t *Transport) Failover(node string) { t.failover(node) }

// orphan is a group whose leader is gone, and how many living members come before this one in standing for election.
type orphan struct {
	*Group
	rank int
}

// failover has the local members of the groups that node led stand for election, those of a group one after the other:
// two at once split the votes, and the next try takes an election timeout.
func (t *Transport) failover(node string) {
	orphans := t.orphans(node)
	if len(orphans) == 0 {
		return
	}
	t.o.Logger.Warn("a node is dead: its groups elect other leaders", "node", node, "groups", len(orphans))
	t.running.Go(func() {
		for start := t.now(); len(orphans) > 0; {
			orphans = standFirst(orphans, start)
			at, coming := t.now(), false
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(t.o.Stagger):
			}
			orphans = slices.DeleteFunc(orphans, func(o orphan) bool {
				// Where many stand at once, or the machine is busy, votes take their time: as long as some are asked for by who was
				// told to stand, others will be. What raft's own timers do meanwhile says nothing of those.
				coming = coming || o.told.Load() >= at
				return !o.ledBy(node) // its vote is given, or more
			})
			coming = coming && t.passed(start) < t.o.Timeout
			for i := range orphans {
				if o := &orphans[i]; !coming && o.voted.Load() < at {
					o.rank = max(0, o.rank-1)
				}
			}
		}
	})
}

// orphans are the groups that node led and whose local member may stand.
func (t *Transport) orphans(node string) (all []orphan) {
	t.mu.Lock()
	var led []*Group
	for _, g := range t.groups {
		if g.ledBy(node) {
			led = append(led, g)
		}
	}
	t.mu.Unlock()
	for _, g := range led {
		if rank, votes := g.rank(node); votes {
			all = append(all, orphan{g, rank})
		}
	}
	return all
}

// standFirst has those stand that nobody comes before, or that had to refuse their vote to the one that does, as that has less; it
// returns the others.
func standFirst(orphans []orphan, since moment) []orphan {
	return slices.DeleteFunc(orphans, func(o orphan) bool {
		first := o.rank == 0 || o.refused.Load() > since
		if first {
			o.stand()
		}
		return first
	})
}

// rank is how many living voters, but for the dead leader, come before this one; votes is false if this member is no voter
// or does not know. Which one comes first differs from group to group, so that the survivors share the work, and the leads.
func (g *Group) rank(dead string) (rank int, votes bool) {
	b := g.bound.Load()
	if b == nil {
		return 0, false
	}
	var living []string
	for _, s := range b.servers() {
		switch node := string(s.Address); {
		case s.Suffrage != raft.Voter || node == dead:
		case node == g.t.o.Node:
			votes = s.ID == b.self
			living = append(living, node)
		default:
			if p, err := g.t.peer(node); err == nil && p.alive() {
				living = append(living, node)
			}
		}
	}
	if !votes {
		return 0, false
	}
	slices.Sort(living)
	first := int(g.id[0]) % len(living)
	return (slices.Index(living, g.t.o.Node) - first + len(living)) % len(living), true
}
