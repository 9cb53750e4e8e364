package cluster

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// DataDir is where everything of the node lies, as an absolute path, and the room of its
// disk in bytes; -1 where that is not known.
func (n *Node) DataDir() (dir string, free, total int64) {
	dir, err := filepath.Abs(n.opts.Dir)
	if err != nil {
		dir = n.opts.Dir
	}
	if free, total, err = n.opts.FS.Space(n.opts.Dir); err != nil {
		return dir, -1, -1
	}
	return dir, free, total
}

// PartitionBytes is how much of the disk a partition takes: its part of the journal that
// it shares with others of its stream, whose files are not told apart. What is allocated
// ahead counts.
func (n *Node) PartitionBytes(s *metadata.Stream, partition int32) (int64, error) {
	journal := s.JournalOf(partition)
	dir := n.dir.Journal(s.ID, journal)
	names, err := n.opts.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // not used yet
	}
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, name := range names {
		info, err := n.opts.FS.Stat(path.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return 0, err
		case info.Mode().IsRegular():
			total += info.Size()
		}
	}
	sharing := (s.Partitions - journal + s.Journals - 1) / s.Journals
	return total / int64(sharing), nil
}
