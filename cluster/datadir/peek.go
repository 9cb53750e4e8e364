package datadir

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// PeekMeta reads the metadata of a data directory as it stands on disk, without a lock and without changing anything: on a
// disk that is mounted read-only, or beside the node that has it open. In a group of one all that is in its log holds.
// The error is fs.ErrNotExist where there is no metadata.
func PeekMeta(fsys vfs.FS, dir string) (*metadata.State, error) {
	dir = Dir{fsys, dir}.Meta()
	m := metadata.New()
	after, err := peekSnapshot(m, fsys, dir)
	if err != nil {
		return nil, err
	}
	p, err := storage.OpenPeek(fsys, dir)
	if err != nil {
		return nil, err
	}
	err = p.Commands(after, func(index uint64, data []byte) error {
		m.Apply(&raft.Log{Index: index, Data: data})
		return m.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the metadata in %s: %w", dir, err)
	}
	return m, nil
}

// peekSnapshot loads the newest good snapshot and returns the log entry that it stands for.
func peekSnapshot(m *metadata.State, fsys vfs.FS, dir string) (index uint64, err error) {
	meta, state, err := raftgroup.NewestSnapshot(fsys, dir)
	if err != nil || meta == nil {
		return 0, err
	}
	return meta.Index, m.Restore(io.NopCloser(bytes.NewReader(state)))
}

// JournalDirs returns where a data directory keeps the journals of a stream, in their order, and which partitions are in
// each: p in journal p modulo their number.
func JournalDirs(dir string, s *metadata.Stream) []string {
	dirs := make([]string, s.Journals)
	for i := range dirs {
		dirs[i] = Dir{Path: dir}.Journal(s.ID, int32(i))
	}
	return dirs
}
