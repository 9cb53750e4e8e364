package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
)

const (
	// replicasEvery is how often a node looks after its replicas if nothing changes.
	replicasEvery = time.Second
	// openAtOnce is how many journals are opened at a time.
	openAtOnce = 8
)

// journalGroupID is a journal's name in the transport.
func journalGroupID(stream metadata.StreamID, journal int32) transport.GroupID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32(stream[:], uint32(journal)))
	return transport.GroupID(sum[:16])
}

// keepReplicas opens the journals that this node is to have, and removes what it is not to have any more, until the node
// closes.
func (n *Node) keepReplicas() {
	told := retry.Told{}
	for {
		changed := n.meta.Changed()
		n.tendReplicas(told)
		select {
		case <-changed:
		case <-time.After(replicasEvery):
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) tendReplicas(told retry.Told) {
	// Asked before the metadata is read: what that says while the node starts may be old, and a round takes as long as
	// journals take to open.
	settled := n.isReady()
	var all sync.WaitGroup
	var mu sync.Mutex // guards told
	room := make(chan struct{}, openAtOnce)
	for _, s := range n.meta.Known() {
		if s.Deleting {
			if err := n.remove(s); err != nil && n.ctx.Err() == nil {
				n.logger.Error("a deleted stream could not be removed; trying again", "stream", s.Name, "error", err)
			}
			continue
		}
		l, err := n.journals.live(s)
		if err != nil {
			continue // deleted, or the node is closing
		}
		for _, h := range l.journals {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				err := n.tendReplica(l, h, settled)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && len(told) == 0 {
					return
				}
				if what := fmt.Sprint("replica ", h.stream, h.number); err == nil {
					delete(told, what)
				} else if n.ctx.Err() == nil && told.Fresh(what, err.Error()) {
					n.logger.Error("a replica of a journal is not in order; trying again", "stream", s.Name, "journal", h.number, "error", err)
				}
			})
		}
	}
	all.Wait()
}

// isReady says whether [Node.Ready] is closed.
func (n *Node) isReady() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}

// tendReplica makes one journal here what the metadata wants it to be. Unless that is settled, nothing is begun or given up.
func (n *Node) tendReplica(l *liveStream, h *journalHandle, settled bool) error {
	s := l.stream
	born, noted := n.file.Get().Replicas[h.name]
	mine, has := metadata.FindReplica(s.ReplicasOf(h.number), n.id)
	old, leaving := metadata.FindReplica(s.LeavingOf(h.number), n.id)
	want, wanted := mine, has
	if leaving && (noted && born == old.Born || !noted && old.Born == 0) {
		want, wanted = old, true // its group may still count on it
	}
	switch {
	case wanted && noted && born == want.Born:
		return n.openReplica(l, h, want)
	case !settled:
		return nil
	}
	h.unopened.Store(nil)
	switch {
	case noted:
		return n.dropReplica(h)
	case wanted:
		return n.beginReplica(l, h, want)
	}
	return nil
}

// openReplica opens a copy that was begun, if it is not open.
func (n *Node) openReplica(l *liveStream, h *journalHandle, r metadata.Replica) error {
	if g := h.opened(); g != nil {
		return errors.Join(lookAfter(h, g), n.tidyAside(h, r, g))
	}
	h.tidied.Store(false)
	names, err := n.opts.FS.ReadDir(n.dir.Journal(h.stream, h.number))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if names = slices.DeleteFunc(names, datadir.IsClaim); len(names) == 0 {
		// Its votes are forgotten, and what it acknowledged: it is not to vote again as if it had never been.
		if _, err := n.proposer.propose(n.ctx, metadata.Command{ReplaceReplica: &metadata.ReplaceReplica{ID: h.stream, Journal: h.number, Replica: r}}); err != nil {
			return err
		}
		n.logger.Error("the files of a journal are gone; another copy takes their place, from the other replicas", "stream", l.stream.Name, "journal", h.number)
		return nil
	}
	if err := h.start(func() (*raftgroup.Group, error) { return n.openJournalOf(h, r, nil, nil) }); err != nil {
		if err = n.mendCopy(l, h, r, err); err != nil && !errors.Is(err, ErrClosed) {
			h.unopened.Store(&err)
		}
		return err
	}
	h.unopened.Store(nil)
	n.hasten(h, false)
	return nil
}

// beginReplica makes a new copy. That it exists is noted before raft runs: a copy that votes is never forgotten. What is
// in the directory already, as a crash came before the note, or as the node was alone, is taken over.
func (n *Node) beginReplica(l *liveStream, h *journalHandle, r metadata.Replica) error {
	var peers []raft.Server
	if r.Born == 0 {
		for _, node := range l.stream.FoundersOf(h.number) {
			peers = append(peers, metadata.Replica{Node: node}.Server(raft.Voter))
		}
	}
	note := func() error {
		return n.file.Update(func(i *datadir.Identity) {
			if i.Replicas == nil {
				i.Replicas = map[string]uint64{}
			}
			i.Replicas[h.name] = r.Born
		})
	}
	if err := h.start(func() (*raftgroup.Group, error) { return n.openJournalOf(h, r, peers, note) }); err != nil {
		return err
	}
	n.hasten(h, len(peers) > 0)
	return nil
}

// dropReplica removes a copy that nobody counts on any more.
func (n *Node) dropReplica(h *journalHandle) error {
	if err := h.end(); err != nil {
		n.logger.Warn("closing a journal that is given up here", "dir", n.dir.Journal(h.stream, h.number), "error", err)
	}
	if err := errors.Join(datadir.RemoveAll(n.opts.FS, n.dir.Journal(h.stream, h.number)), n.removeAside(h)); err != nil {
		return err
	}
	return n.file.Update(func(i *datadir.Identity) { delete(i.Replicas, h.name) })
}

// lookAfter has a copy whose group has ended, to be opened anew, opened in the next round.
func lookAfter(h *journalHandle, g *raftgroup.Group) error {
	select {
	case <-g.Done():
		if errors.Is(g.Err(), raftgroup.ErrReopen) {
			return h.end()
		}
	default: // where it has ended for good Health tells of it
	}
	return nil
}
