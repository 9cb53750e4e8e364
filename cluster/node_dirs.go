package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// A data directory:
//
//	lock                      held while a node has the directory
//	meta/                     the metadata group
//	streams/<stream id>/<n>/  journal n of a stream
const (
	metaDir    = "meta"
	streamsDir = "streams"
)

func (n *Node) metaDir() string { return path.Join(n.opts.Dir, metaDir) }

func (n *Node) streamDir(id metadata.StreamID) string {
	return path.Join(n.opts.Dir, streamsDir, id.String())
}

func (n *Node) journalDir(id metadata.StreamID, journal int32) string {
	return path.Join(n.streamDir(id), strconv.Itoa(int(journal)))
}

// makeDir makes a directory of the node and makes its name durable, up to the
// entry of the data directory itself: a power cut must not take away a directory
// whose files were synced. A directory that is there already is synced too: the
// run that made it may have been stopped before it got so far.
func (n *Node) makeDir(dir string) error {
	dir = path.Clean(dir)
	if err := n.opts.FS.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	top := path.Dir(path.Clean(n.opts.Dir))
	for dir != top {
		dir = path.Dir(dir)
		if err := n.opts.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// checkDirs compares the streams on disk with those in the metadata. What the
// metadata does not know is never removed: it is far more likely that the
// metadata is damaged or old than that the data is not wanted. A directory whose
// metadata is empty is refused altogether.
func (n *Node) checkDirs() error {
	names, err := n.opts.FS.ReadDir(path.Join(n.opts.Dir, streamsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing streams: %w", err)
	}
	known := n.meta.Known()
	for _, name := range names {
		id, err := metadata.ParseStreamID(name)
		if _, ok := known[id]; ok && err == nil {
			continue
		}
		n.strays = append(n.strays, path.Join(n.opts.Dir, streamsDir, name))
	}
	if len(n.strays) == 0 {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("%s holds %d streams, but the metadata in %s knows none: it was lost or replaced; "+
			"put the right %s back, or move %s away to start empty",
			path.Join(n.opts.Dir, streamsDir), len(n.strays), n.metaDir(), metaDir, streamsDir)
	}
	for _, dir := range n.strays {
		n.logger.Error("a stream on disk is not in the metadata; it is left alone and cannot be read: restore the metadata that knows it, or move it away", "dir", dir)
	}
	return nil
}

// Strays returns the directories below streams/ that the metadata does not know.
// They are left alone.
func (n *Node) Strays() []string { return n.strays }

// removeAll removes a directory with all that is in it. It is not an error if
// there is none.
func removeAll(fsys vfs.FS, dir string) error {
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		child := path.Join(dir, name)
		info, err := fsys.Stat(child)
		if err != nil {
			return err
		}
		if info.IsDir() {
			err = removeAll(fsys, child)
		} else {
			err = fsys.Remove(child)
		}
		if err != nil {
			return err
		}
	}
	if err := fsys.Remove(dir); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}
