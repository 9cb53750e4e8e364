package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

// metaSegment is the size of the metadata log's segment files; snapshots keep it
// from growing.
const metaSegment = 4 << 20

// metaCommitEvery is how soon the other nodes hear what of the metadata is committed: who had a command applied from
// another node waits for it.
const metaCommitEvery = 20 * time.Millisecond

// openMeta opens the metadata group and brings the state up to date. A log that was damaged while the node was down is
// given up, if the other nodes have it.
func (n *Node) openMeta() (*raftgroup.Machine, error) {
	g, err := n.tryOpenMeta()
	if err == nil {
		return g, nil
	}
	if err := n.replaceMeta(err); err != nil {
		return nil, err
	}
	return n.tryOpenMeta()
}

func (n *Node) tryOpenMeta() (*raftgroup.Machine, error) {
	o := raftgroup.Options{
		Dir: n.dir.Meta(), ID: n.name(),
		Journal: storage.Options{
			SegmentBytes: metaSegment,
			FS:           n.opts.FS,
			Logger:       n.logger,
		},
		CommitEvery: metaCommitEvery,
		Logger:      n.logger,
	}
	if err := n.joinMetaGroup(&o); err != nil {
		return nil, err
	}
	g, err := raftgroup.OpenMachine(o, n.meta)
	if err != nil {
		if t, ok := o.Transport.(*transport.Group); ok {
			_ = t.Close() // it has no errors
		}
		return nil, fmt.Errorf("opening the metadata: %w", err)
	}
	return g, nil
}

// openJournal opens one journal of a stream.
func (n *Node) openJournal(h *journalHandle) (*raftgroup.Group, error) {
	if n.Observes() {
		return n.openMirror(h)
	}
	return n.openJournalWith(h, func(*raftgroup.Options) error { return nil })
}

// openJournalOf opens a copy of a journal that other nodes have too. peers are those to begin it with; begun is called
// when it is begun and before it takes part.
func (n *Node) openJournalOf(h *journalHandle, r metadata.Replica, peers []raft.Server, begun func() error) (*raftgroup.Group, error) {
	return n.openJournalWith(h, func(o *raftgroup.Options) error {
		g, err := n.trans.Group(journalGroupID(h.stream, h.number))
		if err != nil {
			return err
		}
		o.ID, o.Transport, o.Timeout, o.Peers, o.Begun = string(r.ID()), g, n.opts.timeout(), peers, begun
		o.Changed, o.Copies = n.leads.ring, nodeCopies{n, h}
		return nil
	})
}

func (n *Node) openJournalWith(h *journalHandle, adapt func(*raftgroup.Options) error) (*raftgroup.Group, error) {
	return n.openJournalBy(h, raftgroup.Open, adapt)
}

func (n *Node) openJournalBy(h *journalHandle, open func(raftgroup.Options) (*raftgroup.Group, error), adapt func(*raftgroup.Options) error) (*raftgroup.Group, error) {
	mode := storage.Replicated
	if h.durable {
		mode = storage.Durable
	}
	dir := n.dir.Journal(h.stream, h.number)
	if err := n.dir.Make(dir); err != nil {
		return nil, err
	}
	if err := n.dir.Claim(dir, n.whose(h)); errors.Is(err, datadir.ErrMisplaced) {
		return nil, fmt.Errorf("opening journal %d of stream %s: %w", h.number, h.stream, err)
	} else if err != nil { // a full disk, say, which must not keep what it has from being read
		n.logger.Warn("it is not noted whose copy of a journal a directory has", "dir", dir, "error", err)
	}
	o := raftgroup.Options{
		Dir: dir, ID: n.name(),
		Journal: storage.Options{
			Mode:         mode,
			Admit:        n.disk.Admit,
			SegmentBytes: n.opts.SegmentBytes,
			Cache:        n.cache,
			FS:           n.opts.FS,
			Logger:       n.logger,
		},
		CareEvery:   n.opts.Scrub.Compare,
		Figures:     &n.figures,
		RetainEvery: 10_000 * time.Hour, // keepHouse does it, when it knows what is held
		Logger:      n.logger,
	}
	if err := adapt(&o); err != nil {
		return nil, err
	}
	g, err := open(o)
	if err != nil {
		if t, ok := o.Transport.(*transport.Group); ok {
			_ = t.Close() // it has no errors
		}
		return nil, fmt.Errorf("opening journal %d of stream %s: %w", h.number, h.stream, err)
	}
	return g, nil
}

// whose names the copy that this node has of a journal. An observer's is as good as another's: it votes for nobody.
func (n *Node) whose(h *journalHandle) string {
	if n.Observes() {
		return fmt.Sprintf("an observer's journal %s", h.name)
	}
	return fmt.Sprintf("node %d's journal %s", n.id, h.name)
}
