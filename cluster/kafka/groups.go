package kafka

import (
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// groupCoordinator holds the groups that have, or lately had, members. Offsets
// are not its business: they are the metadata's.
type groupCoordinator struct {
	delay time.Duration

	mu     sync.Mutex
	closed bool
	epoch  uint64 // under which the groups were made; never goes back
	groups map[string]*membership.Group
	sweep  int // how many groups there may be before idle ones are let go
}

const smallestSweep = 64

func newGroupCoordinator(delay time.Duration) *groupCoordinator {
	return &groupCoordinator{delay: delay, groups: map[string]*membership.Group{}, sweep: smallestSweep}
}

// enter begins an epoch, in which no group has members yet. Without serving, the epoch
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
	}
	return epoch == c.epoch
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
		return nil, cluster.ErrNotCoordinator
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
	g := membership.New(c.delay)
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
