package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
)

const (
	// leastGreet and mostGreet are how long the next greeting of an address waits that nobody of this cluster has answered at.
	leastGreet = 200 * time.Millisecond
	mostGreet  = 10 * time.Second
)

// greetOthers looks for the other nodes at the addresses that are given at this start: they may have moved, all of them at
// once, and then nobody can tell anybody where to.
func (n *Node) greetOthers() {
	var all sync.WaitGroup
	for _, address := range n.opts.Network.Join {
		all.Go(func() { n.greet(address) })
	}
	all.Wait()
}

// greet greets an address until a node of this cluster answers, which then knows where this one is.
func (n *Node) greet(address string) {
	told := ""
	for wait := leastGreet; ; wait = min(2*wait, mostGreet) {
		_, err := n.trans.Greet(n.ctx, address)
		if err == nil {
			return
		}
		var refused *transport.RefusedError
		if errors.As(err, &refused) && n.weigh(address, refused) && told != refused.Reason {
			told = refused.Reason
			n.logger.Error("the node at an address that was given to join refuses this one", "address", address, "error", err)
		}
		if n.removal.told() || !retry.Pause(n.ctx, wait) {
			return
		}
	}
}

// whereAnswer is where a node reaches the others.
type whereAnswer struct {
	Addresses map[int32]string `json:"addresses,omitempty"`
}

func (n *Node) answerWhere() whereAnswer {
	a := whereAnswer{map[int32]string{}}
	for name, p := range n.trans.Stats().Peers {
		if p.Up {
			a.Addresses[metadata.NodeAt(raft.ServerAddress(name))] = p.Address
		}
	}
	return a
}

// askAround asks, while no leader of the metadata tells this node anything, those it knew last: where the others are, one
// of which may lead and not know where this one is, and whether it was taken out, which every answer says.
func (n *Node) askAround() {
	if n.Controller() >= 0 {
		return
	}
	for id := range n.file.Get().Peers {
		ctx, cancel := context.WithTimeout(n.ctx, time.Second)
		var a whereAnswer
		if n.callNode(ctx, id, callWhere, nil, &a) == nil {
			for other, address := range a.Addresses {
				n.trans.LookAt(metadata.NodeName(other), address)
			}
		}
		cancel()
	}
}

// weigh draws the consequences of a refusal, and says whether there are none but to tell it.
func (n *Node) weigh(address string, r *transport.RefusedError) (tell bool) {
	switch {
	case strings.Contains(r.Reason, transport.Superseded):
		n.noteRemoved(fmt.Sprintf("the node at %s says that the cluster went on without it", address))
		return false
	case r.SetBack:
		n.noteSetBack(fmt.Sprintf("the node at %s says: %s", address, r.Reason))
		return false
	case r.Foreign && n.isAlone():
		n.noteUnfit(fmt.Errorf("the folder %s belongs to cluster %s, which it founded and whose only node it is, but it was started to join the one of %s: %w. A folder belongs to one cluster for good: to join that one, start with an empty folder (to keep what is in this one, copy its streams over Kafka's protocol first); to stay, start without the address to join",
			n.opts.Dir, n.file.Get().Cluster, address, r))
		return false
	}
	return !r.Doubled // lookForDoubles tells that
}

// isAlone says whether the cluster has no other node.
func (n *Node) isAlone() bool {
	return len(n.file.Get().Peers) == 0 && len(n.meta.Members()) <= 1
}

// doubleTimes is for how many timeouts a node that was just started may be refused as the double of another process. One
// that takes the place of a dead one is let in when that is taken for dead, after one.
const doubleTimes = 3

// lookForDoubles ends this process if it is a copy of a node that runs elsewhere: it never was let in, and others go on
// hearing of that one. A node that was let in before does not know which of both is the copy, and goes on trying.
func (n *Node) lookForDoubles(peers map[string]transport.PeerStats) {
	var why error
	for _, p := range peers {
		if p.Sessions > 0 {
			return
		}
		if p.Doubled > doubleTimes*n.opts.timeout() {
			why = p.Err
		}
	}
	if why == nil {
		return
	}
	n.noteUnfit(fmt.Errorf("node %d of cluster %s runs as another process: %w. The folder of this one, %s, is a copy of that one's, or that one's was copied; two with one identity would tear the cluster's journals apart. Remove the copy; to add a node, start it with an empty folder and the address of a node to join",
		n.id, n.file.Get().Cluster, why, n.opts.Dir))
}

// twinOf names both of two processes that run as a node; empty if this node knows of one alone.
func (n *Node) twinOf(id int32) string {
	if n.trans == nil { // it is no node of a cluster, and nobody's twin
		return ""
	}
	p := n.trans.Stats().Peers[metadata.NodeName(id)]
	if p.Twin == "" {
		return ""
	}
	return fmt.Sprintf("TWO PROCESSES RUN AS NODE %d: the one at %s is connected to node %d, one at %s is refused there. One of them runs on a copy of the other's folder: stop both, remove the copy, and start the one that was there first, or, if the copy has taken its place meanwhile, take node %d out and join again with an empty folder",
		id, p.Address, n.id, p.Twin, id)
}

// tryAddress refuses an address at which nothing is reached from here: whoever asks to join with it could never take part.
func (n *Node) tryAddress(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.timeout())
	defer cancel()
	conn, err := n.opts.Network.dial(ctx, address)
	if err != nil {
		return fmt.Errorf("node %d cannot reach %s, which the node that asks to join gives as its address: %w; start it with the right one (--cluster-advertise, or --cluster where that is missing), or open the way to it", n.id, address, err)
	}
	return conn.Close()
}
