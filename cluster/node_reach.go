package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/transport"
)

// unreachedTimes is after how many timeouts a node says that no other one reaches it.
const unreachedTimes = 5

// reachability is what a node knows of whether others reach it.
type reachability struct {
	mu    sync.Mutex // guards all below
	since time.Time  // since when no node reaches it that it reaches; zero: one does
	why   error      // set once that is so for long enough
}

func (r *reachability) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// lookWhoReaches notices that this node reaches others and none of them reaches it: then it takes part in nothing, as they
// only know it by the address that it advertises.
func (n *Node) lookWhoReaches(peers map[string]transport.PeerStats) {
	var names []string
	served := false
	for name, p := range peers {
		served = served || p.Serves
		if p.Up {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	n.reached.mu.Lock()
	defer n.reached.mu.Unlock()
	r := &n.reached
	switch {
	case served || len(names) == 0:
		if r.why != nil {
			n.logger.Info("this node is reached by others again", "address", n.opts.Network.address())
		}
		r.since, r.why = time.Time{}, nil
	case r.since.IsZero():
		r.since = time.Now()
	case r.why == nil && time.Since(r.since) > unreachedTimes*n.opts.timeout():
		r.why = fmt.Errorf("no other node reaches this one at %s, the address that it advertises, though it reaches node %s: start it with the right one (--cluster-advertise, or --cluster where that is missing), or open the way to it",
			n.opts.Network.address(), strings.Join(names, ", "))
		n.logger.Error("NO OTHER NODE REACHES THIS ONE: it takes part in nothing", "error", r.why)
	}
}
