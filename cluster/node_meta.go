package cluster

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// Where the metadata's directory lies while a damaged log in it is replaced, and where the damaged one is kept.
const (
	nextMetaSuffix    = ".next"
	damagedMetaSuffix = ".damaged"
)

// fewestElsewhere is how many other nodes there have to be for the metadata to be had from them for certain: with one
// other it may be this node alone that votes.
const fewestElsewhere = 2

// replaceMeta makes a metadata directory that does not open, because the log is damaged or the snapshots before it are, one that
// does: without the log, with the good snapshots, and with the term and the vote that the node must not forget. As it has acknowledged what it has no more, it
// votes again only when it has what a leader has, as a copy of a journal that is in doubt. The damaged directory is kept.
//
// It can be cut off anywhere: the new directory is whole before the old one is renamed, and finishMeta does the rest.
func (n *Node) replaceMeta(cause error) error {
	var d *storage.DamageError
	if !errors.As(cause, &d) && !errors.Is(cause, raftgroup.ErrSnapshotsLost) {
		return cause
	}
	if me := n.file.Get(); n.trans == nil || !me.Settled || len(me.Peers) < fewestElsewhere {
		return fmt.Errorf("%w; the metadata of this node may be nowhere else: restore %s from a backup, or see with `daybook journal repair` what would be lost without the damaged part",
			cause, n.dir.Meta())
	}
	n.figures.Damaged.Add(1)
	next, kept := n.dir.Meta()+nextMetaSuffix, n.dir.Meta()+damagedMetaSuffix
	fsys := n.opts.FS
	for _, dir := range []string{next, kept} {
		if err := datadir.RemoveAll(fsys, dir); err != nil {
			return err
		}
	}
	if err := storage.Succeed(fsys, n.dir.Meta(), next); err != nil {
		return fmt.Errorf("%w; it could not be replaced: %w", cause, err)
	}
	if err := raftgroup.CopySnapshots(fsys, n.dir.Meta(), next); err != nil {
		return err
	}
	if err := fsys.SyncDir(n.opts.Dir); err != nil {
		return err
	}
	if err := n.renameDir(n.dir.Meta(), kept); err != nil {
		return err
	}
	if err := n.finishMeta(); err != nil {
		return err
	}
	n.figures.Mended.Add(1)
	n.logger.Error("the metadata's log or snapshots were damaged while the node was down: the other nodes give it again, and until then this one has no vote; the damaged files are kept until then",
		"damage", cause, "kept", kept)
	return nil
}

// dropDamagedMeta removes what was kept of a damaged directory of the metadata once this node has everything again.
func (n *Node) dropDamagedMeta() {
	kept := n.dir.Meta() + damagedMetaSuffix
	if _, err := n.opts.FS.Stat(kept); err != nil || n.metaGroup.Doubt() != "" {
		return
	}
	select {
	case <-n.ready:
	default:
		return
	}
	if err := datadir.RemoveAll(n.opts.FS, kept); err != nil {
		n.logger.Warn("the damaged files of the metadata stay; remove them", "dir", kept, "error", err)
		return
	}
	n.logger.Info("this node has the metadata again, and a vote: the damaged files that were kept are removed", "dir", kept)
}

// finishMeta ends a replacement of the metadata's directory that was cut off after the old one was moved away.
func (n *Node) finishMeta() error {
	fsys, next := n.opts.FS, n.dir.Meta()+nextMetaSuffix
	if _, err := fsys.Stat(n.dir.Meta()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := fsys.Stat(next); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return n.renameDir(next, n.dir.Meta())
}

// renameDir renames a directory within the node's, durably.
func (n *Node) renameDir(from, to string) error {
	if err := n.opts.FS.Rename(from, to); err != nil {
		return err
	}
	return n.opts.FS.SyncDir(n.opts.Dir)
}
