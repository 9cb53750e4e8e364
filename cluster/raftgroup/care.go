package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// ErrDiverged ends a group's member whose log differs from that of most others where both are committed. It serves nobody
// any more, and its files stay as they are.
var ErrDiverged = errors.New("this copy of the journal is not the same as most others: it serves nobody any more; keep its directory to look for the reason, then move it away, and a new copy takes its place")

// CareFigures count what was found and done, over all journals that share them.
type CareFigures struct {
	Checked  atomic.Uint64 // bytes of sealed segments
	Compared atomic.Uint64 // links of the chain, with one other copy each
	Damaged  atomic.Uint64 // segments in which damage was found
	Mended   atomic.Uint64 // of these
	Differed atomic.Uint64 // links that were not the same
}

// care is what a group knows of the soundness of its copy.
type care struct {
	chore
	figures *CareFigures

	mu       sync.Mutex        // guards all below
	suspects []uint64          // journal positions that another copy has doubts about
	refused  []uint64          // raft entries whose frames came damaged
	compared map[string]uint64 // by node: all sealed segments up to this entry are the same
	seen     map[uint64]bool   // damage that was told, by journal position
	trouble  map[string]error  // what could not be made good, by subject
	diverged error             // why this copy serves nobody any more; nil: it does
}

func (c *care) init(f *CareFigures) {
	if f == nil {
		f = &CareFigures{}
	}
	c.figures = f
	c.compared, c.seen, c.trouble = map[string]uint64{}, map[uint64]bool{}, map[string]error{}
}

// suspect has the segment at a position checked.
func (c *care) suspect(position uint64) {
	c.mu.Lock()
	c.suspects = append(c.suspects, position)
	c.mu.Unlock()
	c.ring()
}

// refuse notes that a frame of these entries came damaged.
func (c *care) refuse(logs []*raft.Log) {
	c.mu.Lock()
	c.refused = c.refused[:0]
	for _, l := range logs {
		c.refused = append(c.refused, l.Index)
	}
	c.mu.Unlock()
	c.ring()
}

// take returns what was noted since it was called last.
func (c *care) take() (suspects, refused []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	suspects, refused = c.suspects, c.refused
	c.suspects, c.refused = nil, nil
	return suspects, refused
}

// fresh says whether damage at a position is news.
func (c *care) fresh(position uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen[position]
	c.seen[position] = true
	return !seen
}

// mended forgets damage.
func (c *care) mended(position uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, position)
	delete(c.trouble, damageAt(position))
}

func damageAt(position uint64) string { return fmt.Sprint("damage ", position) }

// note keeps what is wrong with a subject, nil for nothing, and says whether that is news.
func (c *care) note(subject string, err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.trouble[subject]
	if err == nil {
		delete(c.trouble, subject)
		return old != nil
	}
	c.trouble[subject] = err
	return old == nil || old.Error() != err.Error()
}

// Troubles says what of the copy is not as it should be, and could not be made good.
func (g *Group) Troubles() (errs []error) {
	c := &g.care
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.trouble {
		errs = append(errs, err)
	}
	return errs
}

// Diverged is why this copy serves nobody any more, or nil.
func (g *Group) Diverged() error {
	g.care.mu.Lock()
	defer g.care.mu.Unlock()
	return g.care.diverged
}

// tend compares the copy with the others and has it mended, also when raft has ended: what the copy has is still read then.
func (g *Group) tend(ctx context.Context) {
	var other *storage.DivergedError
	if errors.As(g.journal.Err(), &other) { // a leader's frame that follows the same entry of the same term
		g.diverge(other)
	}
	suspects, refused := g.care.take()
	for _, position := range suspects {
		_, err := g.journal.Check(position, func(int) error { return ctx.Err() })
		_ = err // damage is in Damages, and everything else is met again
	}
	if len(refused) > 0 {
		g.tellLeader(ctx, refused)
	}
	for _, d := range g.journal.Damages() {
		if ctx.Err() != nil {
			return
		}
		g.mend(ctx, d)
	}
	g.compare(ctx)
}

// tellLeader has the leader look at frames that came damaged from it.
func (g *Group) tellLeader(ctx context.Context, entries []uint64) {
	if g.o.Copies == nil {
		return
	}
	address, _ := g.raft.LeaderWithID()
	if address == "" {
		return // whoever sends them next is told
	}
	a, err := ask(ctx, g.o.Copies, string(address), copyQuestion{Refused: entries})
	switch {
	case err != nil: // raft sends it again, and it is refused again
	case a.Damaged != "":
		g.o.Logger.Warn("the leader sent a damaged frame and has damage on its disk", "node", string(address), "says", a.Damaged)
	default:
		g.o.Logger.Warn("a frame was damaged on its way here; the leader's disk is in order there", "node", string(address), "entry", entries[0])
	}
}

// mend replaces a damaged stretch by the bytes of another copy. A leader hands over first.
func (g *Group) mend(ctx context.Context, d *storage.DamageError) {
	if g.care.fresh(d.Position) {
		g.care.figures.Damaged.Add(1)
		g.o.Logger.Error("bytes on the disk are not what was written: they are not served, and mended from another copy", "damage", d.Error())
		if g.alone == nil && g.raft.State() == raft.Leader {
			if err := g.HandOver(nil); err != nil {
				g.o.Logger.Warn("the lead of a journal with a damaged copy could not be handed over", "dir", g.o.Dir, "error", err)
			}
		}
	}
	if g.o.Copies == nil {
		return
	}
	err := g.mendFrom(ctx, d)
	switch {
	case err == nil:
		g.care.figures.Mended.Add(1)
		g.care.mended(d.Position)
	case ctx.Err() != nil, errors.Is(err, storage.ErrNotCommitted):
	case g.care.note(damageAt(d.Position), fmt.Errorf("%w; it could not be mended from another copy yet: %w", d, err)):
		g.o.Logger.Error("a damaged stretch could not be mended from another copy; trying again", "damage", d.Error(), "error", err)
	}
}

// mendFrom tries the other copies one after the other. One whose bytes do not fit is told to look at its own.
func (g *Group) mendFrom(ctx context.Context, d *storage.DamageError) error {
	err := errors.New("no other copy can be reached")
	for _, node := range g.o.Copies.Nodes() {
		err = g.journal.Mend(d.Position, func(position uint64, buf []byte) error {
			_, err := fetch(ctx, g.o.Copies, node, position, buf)
			return err
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, storage.ErrNotCommitted) {
			return err
		}
		if errors.Is(err, storage.ErrNotMended) {
			_, _ = ask(ctx, g.o.Copies, node, copyQuestion{Position: d.Position, Suspect: true}) // it is checked sooner or later anyway
		}
	}
	return err
}

// Check reads all sealed segments from the disk and checks every byte, at the rate that pace allows. Damage that is found
// is mended by the group itself.
func (g *Group) Check(pace func(bytes int) error) error {
	for at := uint64(0); ; {
		next, err := g.journal.Check(at, func(n int) error {
			g.care.figures.Checked.Add(uint64(n))
			return pace(n)
		})
		var d *storage.DamageError
		if err != nil && !errors.As(err, &d) {
			return err
		}
		if next == 0 {
			return nil
		}
		at = next
	}
}
