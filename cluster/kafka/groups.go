package kafka

import (
	"context"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// groupCoordinator holds the groups that have, or lately had, members. Offsets
// are not its business: they are the metadata's.
type groupCoordinator struct {
	delay time.Duration
	shelf groupShelf // nil: nothing is kept

	mu     sync.Mutex
	closed bool
	epoch  uint64 // under which the groups were made; never goes back
	groups map[string]*membership.Group
	sweep  int // how many groups there may be before idle ones are let go
}

const smallestSweep = 64

// groupShelf is where who belongs to groups outlives a coordinator.
type groupShelf interface {
	// keepGroup keeps a group under an epoch, or forgets it (nil).
	keepGroup(ctx context.Context, epoch uint64, group string, k *membership.Kept) error
	// keptGroups returns what was kept under all epochs so far.
	keptGroups() map[string]*membership.Kept
}

func newGroupCoordinator(delay time.Duration, shelf groupShelf) *groupCoordinator {
	return &groupCoordinator{delay: delay, shelf: shelf, groups: map[string]*membership.Group{}, sweep: smallestSweep}
}

// enter begins an epoch, in which groups have the members that were kept. Without serving, the epoch
// is over and another node's begins.
func (c *groupCoordinator) enter(epoch uint64, serving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if serving {
		c.under(epoch)
		return
	}
	c.void()
}

// under makes the groups those of an epoch, and reports false if it has passed. The
// caller holds mu.
func (c *groupCoordinator) under(epoch uint64) bool {
	if epoch > c.epoch {
		c.void()
		c.epoch = epoch
		if c.shelf != nil && !c.closed {
			for id, k := range c.shelf.keptGroups() {
				c.groups[id] = membership.Restore(*k, c.delay, c.keeper(epoch, id))
			}
		}
	}
	return epoch == c.epoch
}

// keeper keeps who belongs to a group under an epoch.
func (c *groupCoordinator) keeper(epoch uint64, id string) membership.Keeper {
	if c.shelf == nil {
		return nil
	}
	return func(ctx context.Context, k *membership.Kept) error { return c.shelf.keepGroup(ctx, epoch, id, k) }
}

// void tells all members that their groups are not here any more. The caller holds mu.
func (c *groupCoordinator) void() {
	for _, g := range c.groups {
		g.Close()
	}
	clear(c.groups)
}

// get returns the group, and makes it if it does not exist.
func (c *groupCoordinator) get(epoch uint64, id string) (*membership.Group, error) {
	if !validGroup(id) {
		return nil, kerr.InvalidGroupID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, membership.ErrClosed
	}
	if !c.under(epoch) {
		return nil, metadata.ErrNotCoordinator
	}
	if g, ok := c.groups[id]; ok {
		return g, nil
	}
	if len(c.groups) >= c.sweep {
		for id, g := range c.groups {
			if g.CloseIfIdle() {
				delete(c.groups, id)
			}
		}
		c.sweep = max(2*len(c.groups), smallestSweep)
	}
	g := membership.New(c.delay, c.keeper(epoch, id))
	c.groups[id] = g
	return g, nil
}

// find returns the group if it is in memory, and of that epoch.
func (c *groupCoordinator) find(epoch uint64, id string) (*membership.Group, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.under(epoch) {
		return nil, false
	}
	g, ok := c.groups[id]
	return g, ok
}

// all returns the groups in memory.
func (c *groupCoordinator) all() map[string]*membership.Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.groups)
}

// drop lets go of a group without members. It reports whether there is none now.
func (c *groupCoordinator) drop(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.groups[id]
	if ok && !g.CloseIfIdle() {
		return false
	}
	delete(c.groups, id)
	return true
}

func (c *groupCoordinator) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.void()
}

// validGroup refuses names that the metadata could not keep as they are.
func validGroup(id string) bool { return id != "" && len(id) <= 1024 && utf8.ValidString(id) }
