package raftgroup

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// compareAtOnce is how many sealed segments are compared in one question.
const compareAtOnce = 64

// compare compares the chain of checksums at the ends of sealed segments with the other copies, as far as they have the
// same entries and it was not done before. One value stands for all bytes before it; that they are on the disk as well is
// what Check sees to.
func (g *Group) compare(ctx context.Context) {
	if g.o.Copies == nil || g.Diverged() != nil {
		return
	}
	for _, node := range g.o.Copies.Nodes() {
		for ctx.Err() == nil && g.compareWith(ctx, node) {
		}
	}
}

// compareWith compares some segments with one other copy, and says whether there may be more.
func (g *Group) compareWith(ctx context.Context, node string) (more bool) {
	c := &g.care
	c.mu.Lock()
	after := c.compared[node]
	c.mu.Unlock()
	own := g.journal.Links(after, compareAtOnce)
	if len(own) == 0 {
		return false
	}
	q := copyQuestion{}
	for _, l := range own {
		q.Links = append(q.Links, l.Index)
	}
	a, err := ask(ctx, g.o.Copies, node, q)
	if err != nil {
		return false // it is asked again
	}
	theirs := map[uint64]answeredLink{}
	for _, l := range a.Links {
		theirs[l.Index] = l
	}
	for _, l := range own {
		their, ok := theirs[l.Index]
		if !ok {
			return false // it has not come so far
		}
		if !their.Gone {
			c.figures.Compared.Add(1)
		}
		if !their.Gone && their.Link != l {
			g.differs(ctx, l, node, their.Link)
			return false
		}
		c.mu.Lock()
		c.compared[node] = l.Index
		c.mu.Unlock()
	}
	c.note("difference "+node, nil)
	return len(own) == compareAtOnce
}

// differs is what happens when two copies are not the same: most of them decide.
func (g *Group) differs(ctx context.Context, own storage.Link, node string, their storage.Link) {
	tally := map[storage.Link]int{own: 1}
	nodes := g.o.Copies.Nodes()
	for _, n := range nodes {
		a, err := ask(ctx, g.o.Copies, n, copyQuestion{Links: []uint64{own.Index}})
		if err == nil && len(a.Links) == 1 && !a.Links[0].Gone {
			tally[a.Links[0].Link]++
		}
	}
	most := (g.voters(len(nodes)+1))/2 + 1
	err := fmt.Errorf("entry %d ends at position %d with checksum %08x in %s, and at %d with %08x on node %s",
		own.Index, own.Position, own.CRC, g.o.Dir, their.Position, their.CRC, node)
	verdict := "it is not known which is right, as too few copies can be asked"
	switch {
	case tally[own] >= most:
		verdict = "most copies agree with this one"
	case tally[their] >= most:
		verdict = "most copies agree with the other one"
	}
	if g.care.note("difference "+node, fmt.Errorf("two copies of a journal differ: %w; %s", err, verdict)) {
		g.care.figures.Differed.Add(1)
		g.o.Logger.Error("two copies of a journal differ where both are committed: one of them lost or changed what was acknowledged",
			"here", g.o.Dir, "node", node, "entry", own.Index, "position", own.Position, "crc", own.CRC, "their_position", their.Position, "their_crc", their.CRC, "verdict", verdict)
	}
	if tally[own] < most && tally[their] >= most {
		g.diverge(err)
	}
}

// diverge ends the copy: it serves nobody any more, after a restart neither.
func (g *Group) diverge(why error) {
	err := fmt.Errorf("%w (%w)", ErrDiverged, why)
	g.care.mu.Lock()
	g.care.diverged = err
	g.care.mu.Unlock()
	if g.care.note("diverged", err) {
		g.o.Logger.Error("a copy of a journal is not the same as the others: it serves nobody any more", "dir", g.o.Dir, "error", err)
		g.noteDiverged(why)
	}
	g.journal.Fail(err) // ends raft; who leads hands over
}

// voters is how many members vote, or copies if that is not known.
func (g *Group) voters(copies int) (n int) {
	for _, s := range g.Servers() {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	if n == 0 {
		return copies
	}
	return n
}
