package cluster

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
)

// ScrubOptions say how a node looks after the bytes on its disk. Zero fields mean their defaults.
type ScrubOptions struct {
	// BytesPerSecond is how fast sealed segments are read to check every byte of them: 4 MiB by default, negative for
	// never.
	BytesPerSecond int64
	// Every is how long after one round the next one begins; 6 h by default.
	Every time.Duration
	// Compare is how often copies of a journal compare what they have sealed; 10 s by default.
	Compare time.Duration
}

func (o ScrubOptions) withDefaults() ScrubOptions {
	o.BytesPerSecond = cmp.Or(o.BytesPerSecond, 4<<20)
	o.Every = cmp.Or(o.Every, 6*time.Hour)
	return o
}

// scrubStart is how long after its start a node begins its first round: it has other things to do.
const scrubStart = time.Minute

// scrub reads the sealed segments of all open journals and the metadata, round after round, until the node closes. Damage is mended by the
// journals' groups.
func (n *Node) scrub() {
	o := n.opts.Scrub
	if o.BytesPerSecond < 0 {
		return
	}
	free := time.Now() // when what was read before is paid for
	pace := func(bytes int) error {
		free = latest(free, time.Now())
		wait := time.Until(free)
		free = free.Add(time.Duration(bytes) * time.Second / time.Duration(o.BytesPerSecond))
		if !retry.Pause(n.ctx, wait) {
			return n.ctx.Err()
		}
		return nil
	}
	for wait := min(scrubStart, o.Every); retry.Pause(n.ctx, wait); wait = o.Every {
		var groups []*raftgroup.Group
		n.journals.eachOpen(func(_ string, _ *journalHandle, g *raftgroup.Group) { groups = append(groups, g) })
		for _, g := range groups {
			if err := g.Check(pace); err != nil && !errors.Is(err, context.Canceled) && g.Err() == nil {
				n.logger.Error("the sealed segments of a journal could not be checked", "dir", g.Journal().Dir(), "error", err)
			}
		}
		found, err := n.metaGroup.Check(pace)
		n.figures.Damaged.Add(uint64(found))
		if err != nil && !errors.Is(err, context.Canceled) && n.metaGroup.Err() == nil {
			n.logger.Error("the metadata on the disk could not be checked", "dir", n.dir.Meta(), "error", err)
		}
		n.scrubs.Add(1)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Soundness is what a node knows of the bytes on its disk.
type Soundness struct {
	Rounds   uint64 // of checking all sealed segments
	Checked  uint64 // bytes
	Compared uint64 // ends of sealed segments, each with one other copy
	Damaged  uint64 // segments in which damage was found since the start
	Mended   uint64 // of these, from another copy
	Differed uint64 // ends at which two copies were not the same
	Left     int    // segments that are damaged now, and a metadata log that was and is not whole again
	Diverged int    // copies that serve nobody as most others differ
}

// Soundness returns what is known now.
func (n *Node) Soundness() Soundness {
	f := &n.figures
	s := Soundness{
		Rounds: n.scrubs.Load(), Checked: f.Checked.Load(), Compared: f.Compared.Load(),
		Damaged: f.Damaged.Load(), Mended: f.Mended.Load(), Differed: f.Differed.Load(),
	}
	s.Left = len(n.metaGroup.Journal().Damages())
	if n.metaGroup.Journal().Forgot() {
		s.Left++
	}
	n.journals.eachOpen(func(_ string, _ *journalHandle, g *raftgroup.Group) {
		s.Left += len(g.Journal().Damages())
		if g.Diverged() != nil {
			s.Diverged++
		}
	})
	return s
}
