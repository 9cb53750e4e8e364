package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
)

// relieve does what can be done while the disk is nearly full and retention has
// removed what it may: it gives back files kept for reuse, says who holds what
// could go, and removes old segments before their time if it was told to.
func (n *Node) relieve(told retry.Told) {
	if !n.disk.Status().Refusing {
		delete(told, "held")
		return
	}
	var held int64
	var holders []string
	n.journals.eachOpen(func(name string, _ *journalHandle, g *raftgroup.Group) {
		g.Journal().DropSpares()
		if p := g.Journal().Pressure(); p.Held > 0 {
			held += p.Held
			holders = append(holders, n.holdersOf(name)...)
		}
	})
	n.disk.SetHeld(held)
	slices.Sort(holders)
	holders = slices.Compact(holders)
	if held > 0 && told.Fresh("held", strings.Join(holders, ",")) {
		n.logger.Error("consumer groups keep records that retention would have removed from the nearly full disk: let them catch up, or delete those that nobody uses",
			"bytes", held, "groups", strings.Join(holders, ", "))
	}
	_ = n.disk.Measure() // an error is logged by who looks at the disk
	if n.disk.Options().DeleteEarly {
		n.deleteEarly(n.disk.Lacks())
	}
	_ = n.disk.Measure()
}

// holdersOf names the groups that hold a stream.
func (n *Node) holdersOf(stream string) (names []string) {
	s, ok := n.meta.Stream(stream)
	if !ok {
		return nil
	}
	for _, h := range n.meta.IdleHolders(s.ID, time.Now().Add(time.Hour)) {
		names = append(names, h.Group)
	}
	return names
}

// deleteEarly removes the oldest segments of all journals until so many bytes are
// free, whatever their retention says. What is held stays.
func (n *Node) deleteEarly(lacks int64) {
	for lacks > 0 && context.Cause(n.ctx) == nil {
		var oldest *raftgroup.Group
		var at int64
		n.journals.eachOpen(func(_ string, _ *journalHandle, g *raftgroup.Group) {
			if p := g.Journal().Pressure(); p.Oldest > 0 && (oldest == nil || p.Oldest < at) {
				oldest, at = g, p.Oldest
			}
		})
		if oldest == nil {
			return
		}
		freed, err := oldest.Journal().Shed(1)
		if err != nil || freed == 0 {
			n.logger.Warn("removing old segments before their time", "dir", oldest.Journal().Dir(), "error", err)
			return
		}
		n.logger.Warn("removed old records before their time, as the disk is nearly full", "dir", oldest.Journal().Dir(), "bytes", freed)
		lacks -= freed
	}
}
