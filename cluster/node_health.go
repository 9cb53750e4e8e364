package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Disk returns what the node knows of its disk.
func (n *Node) Disk() disk.Status {
	s := n.disk.Status()
	s.ReadOnly = len(n.readOnly())
	return s
}

// Health says why data does not move, or nil while it does: the disk is nearly
// full or does not answer, journals have become read-only, copies are damaged and
// cannot be mended, or differ, or too many are in doubt for a leader, or no other
// node reaches this one.
func (n *Node) Health() error {
	s := n.disk.Status()
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
		errs = append(errs, n.disk.Admit())
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
