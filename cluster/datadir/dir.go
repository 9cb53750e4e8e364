// Package datadir is a node's data directory: where what lies in it, and whose it is.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// Names of what is in a data directory.
const (
	// FileName is the file that says which node of which cluster the directory belongs to. It is there before anything else of
	// the directory is used by a node that has a network.
	FileName = "node.json"
	// MetaName is the directory of the metadata group.
	MetaName = "meta"
	// StreamsName is the directory of the journals: streams/<stream id>/<n> is journal n of a stream.
	StreamsName = "streams"

	lockName = "lock" // held while a process has the directory
)

// Dir is a data directory. It is a value, and keeps nothing open.
type Dir struct {
	FS   vfs.FS
	Path string
}

// Lock keeps other processes out until it is closed; the error says who has it.
func (d Dir) Lock() (io.Closer, error) { return d.FS.Lock(path.Join(d.Path, lockName)) }

// Meta is the directory of the metadata group.
func (d Dir) Meta() string { return path.Join(d.Path, MetaName) }

// Streams is the directory of all journals.
func (d Dir) Streams() string { return path.Join(d.Path, StreamsName) }

// Stream is the directory of a stream's journals.
func (d Dir) Stream(id metadata.StreamID) string { return path.Join(d.Streams(), id.String()) }

// Journal is the directory of a journal.
func (d Dir) Journal(id metadata.StreamID, journal int32) string {
	return path.Join(d.Stream(id), strconv.Itoa(int(journal)))
}

// CopyName is under which an [Identity] knows a copy of a journal.
func CopyName(id metadata.StreamID, journal int32) string { return fmt.Sprintf("%s/%d", id, journal) }

// ParseCopyName is the inverse of [CopyName].
func ParseCopyName(name string) (id metadata.StreamID, journal int32, err error) {
	stream, number, _ := strings.Cut(name, "/")
	if id, err = metadata.ParseStreamID(stream); err != nil {
		return id, 0, err
	}
	n, err := strconv.ParseInt(number, 10, 32)
	return id, int32(n), err
}

// Make makes a directory within this one, or this one, and makes its name durable, up to the entry of the data directory
// itself: a power cut must not take away a directory whose files were synced. A directory that is there already is synced
// too: the run that made it may have been stopped before it got so far.
func (d Dir) Make(dir string) error {
	dir = path.Clean(dir)
	if err := d.FS.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	top := path.Dir(path.Clean(d.Path))
	for dir != top {
		dir = path.Dir(dir)
		if err := d.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// RemoveAll removes a directory with all that is in it. It is not an error if there is none.
func RemoveAll(fsys vfs.FS, dir string) error {
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
			err = RemoveAll(fsys, child)
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
