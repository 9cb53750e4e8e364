package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// checkDirs compares the streams on disk with those in the metadata. What the
// metadata does not know is never removed: it is far more likely that the
// metadata is damaged or old than that the data is not wanted. A directory whose
// metadata is empty is refused altogether.
func (n *Node) checkDirs() error {
	names, err := n.opts.FS.ReadDir(n.dir.Streams())
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
		n.strays = append(n.strays, path.Join(n.dir.Streams(), name))
	}
	if len(n.strays) == 0 {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("%s holds %d streams, but the metadata in %s knows none: it was lost or replaced; "+
			"put the right %s back, or move %s away to start empty",
			n.dir.Streams(), len(n.strays), n.dir.Meta(), datadir.MetaName, datadir.StreamsName)
	}
	for _, dir := range n.strays {
		n.logger.Error("a stream on disk is not in the metadata; it is left alone and cannot be read: restore the metadata that knows it, or move it away", "dir", dir)
	}
	return nil
}

// Strays returns the directories below streams/ that the metadata does not know.
// They are left alone.
func (n *Node) Strays() []string { return n.strays }
