package cluster

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
)

// metaGroupID is the metadata group's name in the transport.
var metaGroupID = transport.GroupID{'m', 'e', 't', 'a', 'd', 'a', 't', 'a'}

// openNetwork starts the transport between nodes and makes the other nodes known that were known last.
func (n *Node) openNetwork() error {
	net, me := n.opts.Network, n.file.Get()
	var err error
	n.trans, err = transport.Open(transport.Options{
		Cluster: me.Family(), Node: metadata.NodeName(n.id), Listener: net.Listener, Advertise: net.address(), Start: me.Starts, Started: n.lastStart, Dial: net.Dial, TLS: net.TLS, Authenticate: n.mayBe,
		Handle: n.handle, HandleStranger: n.takeIn, Observe: n.source.Serve,
		Timeout: n.opts.timeout(), Silence: n.opts.timeout(), Logger: n.logger,
	})
	if err != nil {
		return err
	}
	for id, address := range me.Peers {
		n.trans.SetPeer(metadata.NodeName(id), address)
	}
	return nil
}

// timeout is raft's heartbeat and election timeout between nodes.
func (o *Options) timeout() time.Duration {
	if o.Network == nil || o.Network.Timeout == 0 {
		return 2 * time.Second
	}
	return o.Network.Timeout
}

// joinMetaGroup fills in what the options of the metadata group need to be one of several.
func (n *Node) joinMetaGroup(o *raftgroup.Options) error {
	if n.trans == nil {
		return nil
	}
	g, err := n.trans.Group(metaGroupID)
	if err != nil {
		return err
	}
	o.Transport, o.Timeout = g, n.opts.timeout()
	if n.file.Get().Founding {
		o.Peers = []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(n.name()), Address: raft.ServerAddress(n.name())}}
	}
	return nil
}

// name is the node's id as raft and the transport write it.
func (n *Node) name() string { return metadata.NodeName(n.id) }

// checkMeta refuses to start as a member whose metadata was lost: it has forgotten whom it voted for.
func (n *Node) checkMeta() error {
	if n.trans == nil || !n.file.Get().Settled {
		return nil
	}
	if blank, err := n.metaGroup.Blank(); err != nil || !blank || n.metaGroup.Journal().Forgot() {
		return err
	}
	return fmt.Errorf("the metadata in %s was lost: this directory cannot go on as node %d; take the node out of the cluster and join with an empty directory", n.dir.Meta(), n.id)
}

// settle waits until the metadata here has everything that was acknowledged before the node started, makes the node
// known, and lets who waits for Ready go on.
func (n *Node) settle() {
	for told := ""; ; {
		err := n.trySettle()
		if err == nil {
			close(n.ready)
			return
		}
		if errors.Is(err, metadata.ErrRemoved) {
			n.noteRemoved("the metadata does not have it")
		}
		if text := err.Error(); text != told && n.ctx.Err() == nil && !n.removal.told() {
			told = text
			n.logger.Warn("the node is not yet part of its cluster; trying again", "node", n.id, "error", err)
		}
		if !retry.Pause(n.ctx, 10*retryPause) {
			return
		}
	}
}

func (n *Node) trySettle() error {
	if err := n.SyncMeta(n.ctx); err != nil {
		return err
	}
	if err := n.checkStart(); err != nil {
		return err
	}
	if n.meta.ClusterID() == "" {
		if _, err := n.proposer.propose(n.ctx, metadata.Command{Found: &metadata.Found{ClusterID: n.file.Get().Cluster}}); err != nil {
			return err
		}
	}
	if got, want := n.meta.ClusterID(), n.file.Get().Cluster; got != want {
		return fmt.Errorf("the metadata is of cluster %q, this directory of %q", got, want)
	}
	if err := n.register(n.ctx, nil); err != nil {
		return err
	}
	if err := n.checkDirs(); err != nil {
		return err
	}
	return n.file.Update(func(i *datadir.Identity) { i.Settled, i.Founding = true, false })
}

// Ready is closed when this node's metadata has everything that was acknowledged anywhere before it started. Until then
// it may not know streams that there are.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// followMembers tells the transport of the members there are, at every change, until the node closes.
func (n *Node) followMembers() {
	for {
		changed := n.meta.Changed()
		n.meetMembers()
		select {
		case <-changed:
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) meetMembers() {
	members := n.meta.Members()
	if len(members) == 0 {
		return // nothing is known yet but the addresses in the node's file
	}
	if n.meta.Removed(n.id) {
		n.noteRemoved("the metadata says so")
		return
	}
	now, old := addresses(members, n.id), n.file.Get().Peers
	for id, address := range now {
		n.trans.SetPeer(metadata.NodeName(id), address)
	}
	for id := range old {
		if _, ok := now[id]; !ok {
			n.trans.RemovePeer(metadata.NodeName(id))
		}
	}
	if maps.Equal(now, old) {
		return
	}
	if err := n.file.Update(func(i *datadir.Identity) { i.Peers = now }); err != nil {
		n.logger.Error("the addresses of the other nodes could not be noted: a restart may need --join", "error", err)
	}
}
