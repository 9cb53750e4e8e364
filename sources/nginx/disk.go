package nginx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// fileKey tells a file from others that exist at the same time. The kernel gives an
// inode to another file once it is free, so over time a key is only a hint.
type fileKey struct{ Device, Inode uint64 }

// status is what a folder says of a file.
type status struct {
	key     fileKey
	size    int64
	changed time.Time // when it was last written
	regular bool      // no device, pipe or folder
	folder  bool
}

// same reports whether nothing was written between the two.
func (s status) same(t status) bool {
	return s.key == t.key && s.size == t.size && s.changed.Equal(t.changed)
}

// disk is where logs lie. Between any two calls files may be written, renamed,
// truncated and removed.
type disk interface {
	glob(pattern string) []string
	list(folder string) (names []string, err error)
	stat(path string) (status, error) // through links
	open(path string) (handle, error)
}

// handle is an open file. It stays readable after the file was renamed or removed.
type handle interface {
	io.ReaderAt
	io.Closer
	stat() (status, error)
}

// system is the disk of the operating system.
type system struct{}

func (system) glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // checked when it was decoded
	return paths
}

func (system) list(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (system) stat(path string) (status, error) {
	info, err := os.Stat(path)
	if err != nil {
		return status{}, err
	}
	return statusOf(path, info), nil
}

func (system) open(path string) (handle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened{f, path}, nil
}

// opened is a file of the operating system.
type opened struct {
	*os.File
	path string
}

func (o opened) stat() (status, error) {
	info, err := o.Stat()
	if err != nil {
		return status{}, err
	}
	return statusOf(o.path, info), nil
}

func statusOf(path string, info os.FileInfo) status {
	return status{
		key: keyOf(path, info), size: info.Size(), changed: info.ModTime(),
		regular: info.Mode().IsRegular(), folder: info.IsDir(),
	}
}
