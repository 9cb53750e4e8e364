package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/observer"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Observe makes a node an observer: it is no member of the cluster, has no vote, and keeps a copy of all streams that it
// pulls from nodes of the cluster or from other observers. Consumer groups on it are its own.
type Observe struct {
	// Upstreams are the addresses to pull from, those preferred first: where nodes, or observers that have a Listener, listen
	// for nodes. Required. Other nodes of the cluster are asked only where none of these has a journal.
	Upstreams []string
	// Listener is where further observers connect. It belongs to the node, which closes it. Nil: they cannot.
	Listener net.Listener
	// Rack is the zone that clients are told.
	Rack string
	// Retention is how long records are kept here, whatever the streams' settings say: those count if it is 0, and nothing is
	// removed by age or size if it is negative. Streams and records that are deleted in the cluster go here too.
	Retention time.Duration
	// TLS is used on both sides of every connection, as between nodes; see [Network]. Nil is none.
	TLS *tls.Config
	// Dial opens a connection to an upstream; over TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout is for how long nothing may come from an upstream until another one is taken; 5 s if 0.
	Timeout time.Duration
}

// firstObserver is the lowest id of an observer. Members count from 1, so they never get there; an observer draws its own,
// as it asks nobody to be let in.
const firstObserver int32 = 1 << 30

func newObserverID() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return firstObserver | int32(binary.LittleEndian.Uint32(b[:])&(1<<30-1))
}

// Observes says whether the node is an observer.
func (n *Node) Observes() bool { return n.opts.Observe != nil }

// identifyObserver reads or makes the file that says that the directory is an observer's.
func (n *Node) identifyObserver() error {
	f, found, err := datadir.OpenFile(n.opts.FS, n.opts.Dir)
	if err != nil {
		return err
	}
	n.file = f
	switch {
	case found && !f.Get().Observes:
		return fmt.Errorf("%s is the directory of node %d of a cluster and no observer's: observe with an empty directory", n.opts.Dir, f.Get().Node)
	case !found:
		names, err := n.opts.FS.ReadDir(n.opts.Dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == datadir.MetaName || name == datadir.StreamsName {
				return fmt.Errorf("%s holds the streams of a node that is no observer: observe with an empty directory", n.opts.Dir)
			}
		}
		if err := f.Update(func(i *datadir.Identity) { i.Observes, i.Node, i.Token = true, newObserverID(), datadir.NewToken() }); err != nil {
			return err
		}
	}
	n.id = f.Get().Node
	return nil
}

// observerMay refuses all commands that an observer does not give itself: those about groups, and those by which it follows
// its cluster.
func observerMay(c metadata.Command) error {
	switch {
	case c.CommitOffsets != nil, c.DeleteOffsets != nil, c.DeleteGroup != nil, c.KeepGroup != nil:
		return nil
	case c.Found != nil, c.Mirror != nil, c.ForgetStream != nil:
		return nil
	}
	return ErrObserver
}

// openMirror opens an observer's copy of a journal.
func (n *Node) openMirror(h *journalHandle) (*raftgroup.Group, error) {
	return n.openJournalBy(h, raftgroup.OpenMirror, func(o *raftgroup.Options) error {
		o.Journal.OnDamage = func(*storage.DamageError) { n.observer.Ring() }
		return nil
	})
}

// runObserver starts what an observer needs.
func (n *Node) runObserver() error {
	o := n.opts.Observe
	known := sync.OnceFunc(func() { close(n.ready) })
	var err error
	n.observer, err = observer.New(observer.Options{
		Upstreams: o.Upstreams, Listener: o.Listener, TLS: o.TLS, Dial: o.Dial, Timeout: o.Timeout,
		Name: n.name(), Dir: n.opts.Dir, Logger: n.logger, File: n.file, Meta: n.meta, Propose: n.proposer.propose,
		Copies: &n.journals, Admit: n.disk.Admit, Figures: &n.figures, Source: n.source, Known: known, Changed: n.wake,
	})
	if err != nil {
		return err
	}
	if err := n.checkDirs(); err != nil {
		return err
	}
	if n.meta.ClusterID() != "" {
		known() // what is here can be read, whoever is there
	}
	n.wg.Go(func() { n.observer.Run(n.ctx) })
	n.runHouse()
	return nil
}

// Observer is what pulls the copies of an observer; nil if the node is none.
func (n *Node) Observer() *observer.Observer { return n.observer }

// retentionHere translates a stream's retention for this node.
func (n *Node) retentionHere(p metadata.Policy) metadata.Policy {
	if o := n.opts.Observe; o != nil && o.Retention != 0 {
		p.Retention, p.RetentionBytes = o.Retention, -1
	}
	return p
}
