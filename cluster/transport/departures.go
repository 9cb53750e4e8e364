package transport

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// errDeparting holds entries back from a member whose vote they take.
var errDeparting = errors.New("the entry that takes the member's vote is not committed yet")

// Departures are the members of a group whose vote its leader is taking from them. The entry that does it is sent to such a
// member only once it is committed. If it had the entry before, and the others that have it were lost, the members in the
// majority would need its vote, which it could not give, as its log goes further than theirs; nor would it stand, as raft 1.8.0
// has only those stand that are voters of the newest configuration. Nobody counts on what it has: the entry is committed by the
// others. The zero value has none. It is safe for concurrent use.
type Departures struct {
	mu  sync.Mutex // guards all
	all map[raft.ServerID]*departure
}

// departure is that of one member.
type departure struct {
	over      chan struct{}
	committed bool // set before over is closed
}

// Depart is called before a member's vote is taken, and what it returns with the outcome.
func (d *Departures) Depart(id raft.ServerID) (over func(committed bool)) {
	x := &departure{over: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[raft.ServerID]*departure{}
	}
	d.all[id] = x
	return func(committed bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.all[id] == x {
			delete(d.all, id)
		}
		x.committed = committed
		close(x.over)
	}
}

// Await waits until entries may be sent to a member. The error says that they may not: the one that takes its vote was not
// committed within that time, or before end was closed.
func (d *Departures) Await(id raft.ServerID, entries []*raft.Log, end <-chan struct{}, within time.Duration) error {
	d.mu.Lock()
	x := d.all[id]
	d.mu.Unlock()
	if x == nil || !slices.ContainsFunc(entries, func(l *raft.Log) bool { return takesVote(l, id) }) {
		return nil
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-x.over:
		if x.committed {
			return nil
		}
	case <-end:
	case <-timer.C:
	}
	return errDeparting
}

// takesVote says whether a member has no vote by an entry of the leader's log.
func takesVote(l *raft.Log, id raft.ServerID) bool {
	return l.Type == raft.LogConfiguration &&
		!slices.ContainsFunc(raft.DecodeConfiguration(l.Data).Servers, func(s raft.Server) bool { return s.ID == id && s.Suffrage == raft.Voter })
}
