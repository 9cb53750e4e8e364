package transport

import (
	"fmt"
	"sync"
)

// A node counts its starts, durably and before it says anything. So who comes with a number that was used, or with a lower
// one, runs on a folder that was set back to what it was: it has forgotten what it acknowledged and for whom it voted since,
// and raft is safe only without it.

// life is a process of a node.
type life struct{ start, instance uint64 }

// lives remembers the latest process that was met of each node. Safe for concurrent use.
type lives struct {
	mu     sync.Mutex // guards latest
	latest map[string]life
}

// meet notes who was met, or returns the start of whom it is not the successor of. known is a start that is known from elsewhere.
func (l *lives) meet(node string, now life, known uint64) (later uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.latest[node]
	switch {
	case now.start == 0: // its build does not say
		return 0
	case now.start < known:
		return known
	case now.start < last.start, now.start == last.start && now.instance != last.instance:
		return last.start
	}
	if l.latest == nil {
		l.latest = map[string]life{}
	}
	l.latest[node] = now
	return 0
}

// setBack is the objection to a process of a node that runs on an older state of the node's folder.
func (t *Transport) setBack(node string, now life) objection {
	var known uint64
	if t.o.Started != nil {
		known = t.o.Started(node)
	}
	later := t.lives.meet(node, now, known)
	if later == 0 {
		return objection{}
	}
	return objection{
		fmt.Sprintf("its folder was set back: this is start %d of node %s, and start %d took part before, as another process. What it acknowledged and whom it voted for then is not in this folder", now.start, node, later),
		flagSetBack,
	}
}
