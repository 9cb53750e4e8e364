package cluster

import "github.com/daybook-data/daybook/cluster/metadata"

// leader is who leads the journal as known here, -1 if nobody is known, and its term.
func (h *journalHandle) leader() (node int32, term uint64) {
	node = -1
	if g := h.opened(); g != nil {
		for {
			term = g.Term()
			node = metadata.NodeAt(g.LeaderAddress())
			if g.Term() == term {
				break
			}
		}
	}
	if l, ok := h.all.leads.get(h.key()); ok && (l.Term > term || l.Term == term && node < 0) {
		return l.node, l.Term
	}
	return node, term
}

// leaderOf is leader with an epoch that never goes back.
func (h *journalHandle) leaderOf() (node int32, epoch int32) {
	node, term := h.leader()
	h.shownMu.Lock()
	defer h.shownMu.Unlock()
	if term < h.shown {
		return -1, int32(h.shown)
	}
	h.shown = term
	return node, int32(term)
}

// noteLeader wakes who watches the journal if another one leads it than when it was called last.
func (h *journalHandle) noteLeader() {
	node, term := h.leader()
	h.shownMu.Lock()
	defer h.shownMu.Unlock()
	if h.seenNode == node && h.seenTerm == term {
		return
	}
	h.seenNode, h.seenTerm = node, term
	for w := range h.watchers {
		select {
		case w <- struct{}{}:
		default: // it has to look anyway
		}
	}
}

// watch has changed get a value when the journal's leader changes.
func (h *journalHandle) watch(changed chan<- struct{}) (stop func()) {
	h.shownMu.Lock()
	defer h.shownMu.Unlock()
	if h.watchers == nil {
		h.watchers = map[chan<- struct{}]struct{}{}
	}
	h.watchers[changed] = struct{}{}
	return func() {
		h.shownMu.Lock()
		defer h.shownMu.Unlock()
		delete(h.watchers, changed)
	}
}
