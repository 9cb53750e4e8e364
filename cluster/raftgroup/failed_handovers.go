package raftgroup

import (
	"sync"

	"github.com/hashicorp/raft"
)

// failedHandOvers is to whom the lead could not be handed. Raft 1.8.0 asks the goroutine that replicates to a member to hurry, and
// keeps one such question for it. While the member does not answer that goroutine does not ask, a second attempt waits for room,
// and if this leader is deposed then it waits for ever: raft takes itself to be handing over, and as a leader of a later term
// refuses every append. So a second attempt waits until the member has got on. Its zero value is ready. It is safe for
// concurrent use.
type failedHandOvers struct {
	mu    sync.Mutex
	tried map[raft.ServerID]attempt // guarded by mu
}

// attempt is one that failed: in which term, and where the log ended.
type attempt struct{ term, last uint64 }

// may says whether the lead may be handed to a member that has the entries up to has.
func (f *failedHandOvers) may(id raft.ServerID, term, has uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tried[id]
	return !ok || t.term != term || has >= t.last
}

func (f *failedHandOvers) failed(id raft.ServerID, term, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tried == nil {
		f.tried = map[raft.ServerID]attempt{}
	}
	f.tried[id] = attempt{term, last}
}
