package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/transport"
)

// removal is what a node knows of its own removal from the cluster, or why it cannot be part of it.
type removal struct {
	once sync.Once
	err  error         // what happened and what to do; set before done is closed
	done chan struct{} // closed when it is known
}

func (r *removal) told() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Removed is closed when this node learns that it is not part of its cluster any more: it was taken out, or the cluster
// went on without it after it had lost its majority. What it has counts for nothing from then on: whoever has opened the
// node should stop serving clients and close it. Opening the directory again is refused.
//
// It is also closed when the node must not go on as it was started, though its directory may: it is a copy of a node that
// runs elsewhere, or was to join a cluster and has one of its own. [Node.Health] says which it is.
func (n *Node) Removed() <-chan struct{} { return n.removal.done }

// removedErr says what happened and what to do.
func (n *Node) removedErr() error {
	return fmt.Errorf("%w: node %d of cluster %s (%s); its copies do not count any more. To join again, start it with an empty folder in place of %s and the address of a node to join",
		metadata.ErrRemoved, n.id, n.file.Get().Cluster, n.file.Get().Removed, n.opts.Dir)
}

// noteRemoved notes for good that the node was taken out, and tells everyone.
func (n *Node) noteRemoved(how string) {
	n.removal.once.Do(func() {
		err := n.file.Update(func(i *datadir.Identity) { i.Removed = how })
		n.removal.err = errors.Join(n.removedErr(), err)
		n.logger.Error("THIS NODE WAS TAKEN OUT OF ITS CLUSTER: it serves nobody any more", "error", n.removal.err)
		close(n.removal.done)
	})
}

// noteUnfit ends the node for as long as it runs, and tells everyone.
func (n *Node) noteUnfit(err error) {
	n.removal.once.Do(func() {
		n.removal.err = err
		n.logger.Error("THIS NODE CANNOT BE PART OF ITS CLUSTER as it was started: it serves nobody any more", "error", err)
		close(n.removal.done)
	})
}

// refuseRemoved keeps a node that was taken out from starting.
func (n *Node) refuseRemoved() error {
	if n.file.Get().Removed == "" {
		return nil
	}
	n.id = n.file.Get().Node
	return n.removedErr()
}

// lookForRefusals learns from nodes of a later generation that this one's does not count any more, and from any that this
// one's folder was set back.
func (n *Node) lookForRefusals(peers map[string]transport.PeerStats) {
	for node, p := range peers {
		var refused *transport.RefusedError
		switch {
		case !errors.As(p.Err, &refused):
		case strings.Contains(refused.Reason, transport.Superseded):
			n.noteRemoved(fmt.Sprintf("node %s says that the cluster went on without it", node))
			return
		case refused.SetBack:
			n.noteSetBack(fmt.Sprintf("node %s says: %s", node, refused.Reason))
			return
		}
	}
}
