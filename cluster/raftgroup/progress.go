package raftgroup

import (
	"sync"
	"time"
)

// progress is where members stay behind, as their leader sees it. Its zero value is ready. It is safe for concurrent use.
type progress struct {
	mu sync.Mutex
	at map[string]stay // by node; none where the member had everything. Guarded by mu
}

// stay is since when a member has been seen at an entry that is not the last.
type stay struct {
	entry uint64
	since time.Time
}

// moves notes that the member on a node has the entries up to has, of last that there are, and says whether it had all of
// them or more than before within a while. A member that is only a little behind may be so for good: its disk does not
// answer.
func (p *progress) moves(node string, has, last uint64, while time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if has >= last {
		delete(p.at, node)
		return true
	}
	if s, ok := p.at[node]; ok && s.entry == has {
		return time.Since(s.since) < while
	}
	if p.at == nil {
		p.at = map[string]stay{}
	}
	p.at[node] = stay{has, time.Now()}
	return true
}
