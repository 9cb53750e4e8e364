package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// A folder that was restored from a copy has forgotten what its node acknowledged since, and for whom it voted. With its vote
// somebody could be elected who lacks what a majority had. Starts are counted for that: see transport's lives.

// ErrSetBack: the directory is an older state of what its node was.
var ErrSetBack = errors.New("this node's folder was set back to an older state")

// lastStart is the latest start of another node that the metadata knows.
func (n *Node) lastStart(node string) uint64 {
	return n.meta.LastStart(metadata.NodeAt(raft.ServerAddress(node)))
}

// checkStart is an error if the metadata has something of a later start than this one.
func (n *Node) checkStart() error {
	last, now := n.meta.LastStart(n.id), n.file.Get().Starts
	if last <= now {
		return nil
	}
	n.noteSetBack(fmt.Sprintf("this is its start %d, and the metadata has what it said after start %d", now, last))
	return n.removal.err
}

// noteSetBack ends the node, and notes that it must not start again: each start would be counted, until the number passes
// for a new one.
func (n *Node) noteSetBack(how string) {
	if n.removal.told() {
		return
	}
	err := n.file.Update(func(i *datadir.Identity) { i.SetBack = how })
	n.noteUnfit(errors.Join(n.setBackErr(how), err))
}

func (n *Node) setBackErr(how string) error {
	return fmt.Errorf("%w: node %d of cluster %s (%s). It was restored from a copy, or is one, and must not vote as if nothing had happened. Take the node out (daybook cluster remove %d, at another node) and join with an empty folder in place of %s, or put the folder back that the node had last",
		ErrSetBack, n.id, n.file.Get().Cluster, how, n.id, n.opts.Dir)
}

// refuseSetBack keeps a node whose folder was set back from starting.
func (n *Node) refuseSetBack() error {
	me := n.file.Get()
	if me.SetBack == "" {
		return nil
	}
	n.id = me.Node
	return n.setBackErr(me.SetBack)
}
