package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

// keepHouse does what nobody waits for, until the node closes: it opens journals
// that nobody has used yet, so that their retention runs, removes what retention
// no longer keeps, and removes the files of deleted streams and those that were kept of damaged metadata.
func (n *Node) keepHouse() {
	told := retry.Told{}
	for {
		for id, s := range n.meta.Known() {
			if n.ctx.Err() != nil {
				return
			}
			n.warnOfHolds(s, told)
			switch err := n.tend(s); {
			case err == nil:
				delete(told, "error "+id.String())
			case n.ctx.Err() != nil: // closing cut it short
			case !errors.Is(err, ErrClosed) && told.Fresh("error "+id.String(), err.Error()):
				n.logger.Error("a stream needs attention", "stream", s.Name, "id", id.String(), "error", err)
			}
		}
		n.relieve(told)
		n.dropDamagedMeta()
		select {
		case <-time.After(n.nextRound()):
		case <-n.kick:
		case <-n.ctx.Done():
			return
		}
	}
}

// nextRound is when to look around again: soon while the disk is nearly full.
func (n *Node) nextRound() time.Duration {
	if n.disk.Status().Refusing {
		return min(n.opts.RetainEvery, 5*n.disk.Options().CheckEvery)
	}
	return n.opts.RetainEvery
}

// warnOfHolds tells of groups that hold a stream's retention and have not moved
// for long: a pipeline that was given up keeps the disk filling.
func (n *Node) warnOfHolds(s *metadata.Stream, told retry.Told) {
	for _, h := range n.meta.IdleHolders(s.ID, time.Now().Add(-n.opts.IdleHold)) {
		p, err := n.PartitionByKey(h.Partition)
		if err != nil || p.handle.opened() == nil {
			continue
		}
		if b, err := p.Bounds(); err != nil || h.Offset >= b.HighWatermark {
			continue // it has read everything
		}
		if told.Fresh("hold "+s.ID.String(), h.Group) {
			n.logger.Warn("a consumer group has not moved for long and keeps old records from being removed; if nobody uses it any more, delete the group",
				"stream", s.Name, "group", h.Group, "partition", h.Partition.Partition, "offset", h.Offset)
		}
		return
	}
}

// wake makes the housekeeper look around now.
func (n *Node) wake() {
	select {
	case n.kick <- struct{}{}:
	default: // it will anyway
	}
}

func (n *Node) tend(s *metadata.Stream) error {
	switch {
	case s.Deleting && n.trans == nil:
		return n.remove(s)
	case s.Deleting:
		return nil // keepReplicas does it
	}
	return n.retain(s)
}

// remove takes a deleted stream's files away and then forgets it. Interrupted
// anywhere, the tombstone in the metadata makes the next start go on.
func (n *Node) remove(s *metadata.Stream) error {
	if l := n.journals.drop(s.ID); l != nil {
		if err := l.close(); err != nil {
			n.logger.Warn("closing a journal of a deleted stream", "stream", s.Name, "error", err)
		}
	}
	if err := datadir.RemoveAll(n.opts.FS, n.dir.Stream(s.ID)); err != nil {
		return fmt.Errorf("removing deleted stream %s: %w", s.Name, err)
	}
	if n.trans == nil {
		_, err := n.proposer.propose(n.ctx, metadata.Command{ForgetStream: &metadata.ForgetStream{ID: s.ID}})
		return err
	}
	return n.confirmRemoved(s)
}

// confirmRemoved tells the others that nothing of a deleted stream is here any more, if they have to know.
func (n *Node) confirmRemoved(s *metadata.Stream) error {
	if !s.Uses(n.id) || slices.Contains(s.Removed, n.id) {
		return nil
	}
	err := n.file.Update(func(i *datadir.Identity) {
		for j := range s.Journals {
			delete(i.Replicas, datadir.CopyName(s.ID, j))
		}
	})
	if err != nil {
		return err
	}
	_, err = n.proposer.propose(n.ctx, metadata.Command{ForgetStream: &metadata.ForgetStream{ID: s.ID, Node: n.id}})
	return err
}

// holdName is under which the journal knows what holding groups still need.
const holdName = "groups"

// retain applies a stream's retention to its journals. What a holding group has
// not passed stays.
func (n *Node) retain(s *metadata.Stream) error {
	l, err := n.journals.live(s)
	if err != nil {
		return err
	}
	held := n.meta.Held(s.ID)
	for i, h := range l.journals {
		g, err := h.open()
		if errors.Is(err, ErrNotLeader) {
			continue // it is not open here
		}
		if err != nil {
			return err
		}
		if g.Err() != nil {
			continue // it has ended, which Health tells
		}
		holds := map[uint32]int64{}
		for partition, offset := range held {
			if s.JournalOf(partition) == int32(i) {
				holds[uint32(partition)] = offset
			}
		}
		g.Journal().Hold(holdName, holds)
		g.Journal().SetRetention(retentionOf(n.retentionHere(l.policy)))
		g.Journal().KeepIndexes(l.policy.Indexes)
		if _, err := g.Retain(); err != nil {
			return fmt.Errorf("removing old segments of %s: %w", g.Journal().Dir(), err)
		}
	}
	return nil
}

// retentionOf translates a policy, in which negative is without limit, for the
// journal, where zero is.
func retentionOf(p metadata.Policy) storage.Retention {
	var r storage.Retention
	if p.Retention >= 0 {
		r.Age = max(p.Retention, time.Millisecond)
	}
	if p.RetentionBytes >= 0 {
		r.Bytes = max(p.RetentionBytes, 1)
	}
	return r
}
