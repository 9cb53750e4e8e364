package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// asideInfix is in the names of directories of copies that could not be opened, behind the journal's number; the copy's
// birth number follows.
const asideInfix = ".damaged-"

// mendCopy makes a copy that does not open because of damage one that does: sealed segments are mended from other copies.
// If what is damaged is not in one of them, nothing here vouches for what was acknowledged: the copy is set aside, so that
// it is replaced as one that was lost, if the group has a leader without it. Its files are kept until the new copy counts.
func (n *Node) mendCopy(l *liveStream, h *journalHandle, r metadata.Replica, cause error) error {
	var d *storage.DamageError
	if !errors.As(cause, &d) {
		return cause
	}
	n.figures.Damaged.Add(1)
	dir := n.dir.Journal(h.stream, h.number)
	from, err := raftgroup.MendClosed(n.ctx, n.opts.FS, dir, d, nodeCopies{n, h})
	if err == nil {
		n.figures.Mended.Add(1)
		n.logger.Warn("a journal that did not open was mended from another copy", "stream", l.stream.Name, "journal", h.number, "damage", d.Error(), "node", from)
		return nil // the next round opens it
	}
	if !errors.Is(err, storage.ErrCannotMend) && n.uncommitted(h, d) {
		err = fmt.Errorf("%w: the others have committed nothing there: %w", storage.ErrCannotMend, err)
	}
	lead, ok := n.leads.get(h.key())
	if !errors.Is(err, storage.ErrCannotMend) || !ok || lead.node == n.id || !n.Up(lead.node) {
		return fmt.Errorf("%w; it could not be mended from another copy: %w", cause, err)
	}
	aside := fmt.Sprint(dir, asideInfix, r.Born)
	if err := n.opts.FS.Rename(dir, aside); err != nil {
		return err
	}
	if err := n.opts.FS.SyncDir(path.Dir(dir)); err != nil {
		return err
	}
	n.logger.Error("a copy of a journal is damaged where nothing vouches for what should be there: another copy takes its place, from the other replicas; its files are kept until then",
		"stream", l.stream.Name, "journal", h.number, "damage", d.Error(), "kept", aside)
	return nil // the next round finds it gone
}

// uncommitted says whether a closed copy is damaged behind all that its group has committed: its leader, who was confirmed by most
// of the others and has an entry of its own term committed, says where that ends. Nothing there was ever acknowledged. In a
// journal that nobody appends to the others never commit anything in its place, which would show that.
func (n *Node) uncommitted(h *journalHandle, d *storage.DamageError) bool {
	ctx, cancel := context.WithTimeout(n.ctx, n.opts.timeout())
	defer cancel()
	end, err := n.askFresh(ctx, h)
	return err == nil && d.Position >= end
}

// tidyAside removes what is kept of damaged copies of a journal once the new copy counts.
func (n *Node) tidyAside(h *journalHandle, r metadata.Replica, g *raftgroup.Group) error {
	if h.tidied.Load() {
		return nil
	}
	for _, s := range g.Servers() {
		if s.ID != r.ID() || s.Suffrage != raft.Voter {
			continue
		}
		if err := n.removeAside(h); err != nil {
			return err
		}
		h.tidied.Store(true)
	}
	return nil
}

// removeAside removes what is kept of damaged copies of a journal.
func (n *Node) removeAside(h *journalHandle) error {
	dir := n.dir.Journal(h.stream, h.number)
	names, err := n.opts.FS.ReadDir(path.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, path.Base(dir)+asideInfix) {
			n.logger.Info("the files of a damaged copy of a journal are removed: a new copy counts", "dir", path.Join(path.Dir(dir), name))
			if err := datadir.RemoveAll(n.opts.FS, path.Join(path.Dir(dir), name)); err != nil {
				return err
			}
		}
	}
	return nil
}
