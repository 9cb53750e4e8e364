package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// journalHandle is a journal that is opened by its first use. A failure to open
// is returned to everyone who tries; each try opens anew, as the cause (no
// descriptors, no space) may be gone.
type journalHandle struct {
	all     *journals
	stream  metadata.StreamID
	number  int32
	name    string // under which the node's file knows its copy
	durable bool

	mu     sync.RWMutex
	group  *raftgroup.Group
	closed bool

	tidied   atomic.Bool           // nothing is kept of damaged copies
	unopened atomic.Pointer[error] // why the copy here does not open

	shownMu  sync.Mutex // guards all below
	shown    uint64     // the highest term that was told as the leader's epoch
	seenNode int32      // who led when watchers were told last
	seenTerm uint64
	watchers map[chan<- struct{}]struct{}
}

func (h *journalHandle) key() metadata.StreamJournal {
	return metadata.StreamJournal{Stream: h.stream, Journal: h.number}
}

// open returns the journal's group.
func (h *journalHandle) open() (*raftgroup.Group, error) {
	h.mu.RLock()
	g, closed := h.group, h.closed
	h.mu.RUnlock()
	if g != nil && !closed {
		return g, g.Diverged()
	}
	if closed {
		return g, ErrClosed
	}
	if h.all.several {
		return nil, ErrNotLeader // keepReplicas opens what is to be here
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.group != nil || h.closed {
		return h.group, closedError(h.closed)
	}
	g, err := h.all.open(h)
	if err != nil {
		return nil, err
	}
	h.group = g
	return g, nil
}

func closedError(closed bool) error {
	if closed {
		return ErrClosed
	}
	return nil
}

// journal returns the journal for reading.
func (h *journalHandle) journal() (*storage.Journal, error) {
	g, err := h.open()
	if err != nil {
		return nil, err
	}
	return g.Journal(), nil
}

// reader returns the journal for reading what is committed: of the leader all of it, or, if a follower will do, what is
// known here.
func (h *journalHandle) reader(follower bool) (*storage.Journal, error) {
	g, err := h.open()
	if err != nil {
		return nil, err
	}
	if !follower {
		if err := g.Confirm(); err != nil {
			return nil, err
		}
	}
	return g.Journal(), nil
}

// opened returns the group if it is open.
func (h *journalHandle) opened() *raftgroup.Group {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.group
}

// start opens the journal's group unless it is open.
func (h *journalHandle) start(open func() (*raftgroup.Group, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.group != nil {
		return nil
	}
	g, err := open()
	if err == nil {
		h.group = g
	}
	return err
}

// end closes the journal's group; it can be started again.
func (h *journalHandle) end() error {
	h.mu.Lock()
	g := h.group
	h.group = nil
	h.mu.Unlock()
	if g == nil {
		return nil
	}
	return g.Close()
}

// close closes the journal, if it is open. Not under mu: it waits for appends under way, and whoever hears of those may
// ask who leads.
func (h *journalHandle) close() error {
	h.mu.Lock()
	h.closed = true
	g := h.group
	h.mu.Unlock()
	if g == nil {
		return nil
	}
	err := g.Close()
	h.mu.Lock()
	h.group = nil
	h.mu.Unlock()
	return err
}
