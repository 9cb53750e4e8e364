package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

// watchDisk looks at the disk by the given way until the node closes, and says
// what an operator should know, once each time it begins and ends.
func (n *Node) watchDisk(look func()) {
	for {
		look()
		select {
		case <-time.After(n.disk.o.CheckEvery):
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) lookAtSpace() {
	err := n.disk.measure()
	if err != nil && !n.disk.saidUnknown {
		n.logger.Warn("it is not known how full the disk is; appends go by what was known last", "error", err)
	}
	n.disk.saidUnknown = err != nil
	s := n.disk.now()
	switch {
	case s.Refusing == n.disk.saidFull:
	case s.Refusing:
		n.logger.Error("the disk is nearly full: appends are refused, clients wait; free disk space, lower retention, or let sinks catch up",
			"dir", n.opts.Dir, "free", s.Free, "reserve", s.Reserve)
		n.wake()
	default:
		n.logger.Info("the disk has room again: appends go on", "dir", n.opts.Dir, "free", s.Free)
	}
	n.disk.saidFull = s.Refusing
}

func (n *Node) lookAtStalls() {
	news, over := n.disk.checkStall(time.Now())
	if over != nil {
		n.logger.Warn("the disk answers again", "op", string(over.Op), "file", over.Name, "after", time.Since(over.Since).Round(time.Millisecond))
	}
	if news != nil {
		n.logger.Error("the disk does not answer: what waits for it waits", "op", string(news.Op), "file", news.Name,
			"since", news.Since.Format(time.RFC3339), "for", time.Since(news.Since).Round(time.Millisecond))
		n.stepAside()
	}
}

// Disk returns what the node knows of its disk.
func (n *Node) Disk() DiskStatus {
	s := n.disk.now()
	s.ReadOnly = len(n.readOnly())
	return s
}

// Health says why data does not move, or nil while it does: the disk is nearly
// full or does not answer, journals have become read-only, copies are damaged and
// cannot be mended, or differ, or too many are in doubt for a leader, or no other
// node reaches this one.
func (n *Node) Health() error {
	s := n.disk.now()
	var errs []error
	if n.removal.told() {
		errs = append(errs, n.removal.err)
	}
	if err := n.reached.err(); err != nil {
		errs = append(errs, err)
	}
	if s.Stalled != nil {
		errs = append(errs, fmt.Errorf("the disk has not answered a %s of %s for %s", s.Stalled.Op, s.Stalled.File, s.Stalled.For.Round(time.Second)))
	}
	if s.Refusing {
		errs = append(errs, n.disk.admit())
	}
	n.journals.eachOpen(func(name string, h *journalHandle, g *raftgroup.Group) {
		for _, err := range g.Troubles() {
			errs = append(errs, fmt.Errorf("journal %d of %s: %w", h.number, name, err))
		}
		if why := g.Stuck(); why != "" {
			errs = append(errs, fmt.Errorf("journal %d of %s has no leader and can elect none: %s", h.number, name, why))
		}
	})
	n.journals.eachUnopened(func(name string, h *journalHandle, err error) {
		errs = append(errs, fmt.Errorf("the copy of journal %d of %s does not open: %w", h.number, name, err))
	})
	return errors.Join(append(errs, n.readOnly()...)...)
}

// readOnly returns why journals take nothing any more, one error for each.
func (n *Node) readOnly() (errs []error) {
	note := func(what string, err error) {
		if err != nil && !errors.Is(err, storage.ErrClosed) {
			errs = append(errs, fmt.Errorf("%s: %w: %w", what, ErrReadOnly, err))
		}
	}
	note("the metadata", cmp.Or(n.metaGroup.Err(), n.metaGroup.Journal().Err()))
	n.journals.eachOpen(func(name string, h *journalHandle, g *raftgroup.Group) {
		note(fmt.Sprintf("journal %d of %s", h.number, name), cmp.Or(g.Err(), g.Journal().Err()))
	})
	return errs
}

// relieve does what can be done while the disk is nearly full and retention has
// removed what it may: it gives back files kept for reuse, says who holds what
// could go, and removes old segments before their time if it was told to.
func (n *Node) relieve(told retry.Told) {
	if !n.disk.now().Refusing {
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
	n.disk.setHeld(held)
	slices.Sort(holders)
	holders = slices.Compact(holders)
	if held > 0 && told.Fresh("held", strings.Join(holders, ",")) {
		n.logger.Error("consumer groups keep records that retention would have removed from the nearly full disk: let them catch up, or delete those that nobody uses",
			"bytes", held, "groups", strings.Join(holders, ", "))
	}
	_ = n.disk.measure() // told by watchDisk
	if n.disk.o.DeleteEarly {
		n.deleteEarly(n.disk.lacks())
	}
	_ = n.disk.measure()
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
