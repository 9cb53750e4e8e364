package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// FS is a file system. Names are slash paths as package os takes them; errors are those of package os, so
// errors.Is(err, fs.ErrNotExist) and errors.Is(err, syscall.ENOSPC) work on all implementations.
type FS interface {
	// OpenFile opens a file; flag is a combination of the os.O_ constants.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Rename replaces newName by oldName in one step. It is durable after SyncDir.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// MkdirAll makes a directory and its parents, and is nil if it is there.
	MkdirAll(name string, perm fs.FileMode) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Space returns how many bytes of the disk that holds dir are free for this process, and how many it has.
	Space(dir string) (free, total int64, err error)
	// Lock takes the lock file name exclusively for this process until it is closed. If another holder has it the
	// error is a *LockedError.
	Lock(name string) (io.Closer, error)
}

// File is an open file. It has no current offset.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// WritevAt writes the buffers one after the other at off, as one write where the system can.
	WritevAt(buffers [][]byte, off int64) (int64, error)
	// Sync makes the contents and the size durable (fdatasync). After an error the state of the file on disk is
	// unknown and a second Sync proves nothing: the caller must give the file up.
	Sync() error
	// Truncate sets the size.
	Truncate(size int64) error
	// Allocate makes sure that the range [off, off+n) has disk blocks and lies within the size. Bytes that were
	// never written read as zero. After nil, writes in the range cannot fail for want of space.
	Allocate(off, n int64) error
	// Size returns the size in bytes.
	Size() (int64, error)
	// Name returns the name the file was opened by.
	Name() string
}

// A LockedError says that a lock file is held, and by whom.
type LockedError struct {
	Path   string // the lock file
	Holder string // what the holder wrote into it, for example "process 4711 (daybook run)"
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop it first, or use another directory", filepath.Dir(e.Path), e.Holder)
}

// ReadFile returns the contents of a file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, readOnly, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, size)
	n, err := f.ReadAt(buf, 0)
	if err == io.EOF {
		err = nil
	}
	return buf[:n], err
}

// WriteFile replaces a file by data in one step that survives a crash: the name holds either the old contents or all
// of the new ones. It writes name+".tmp", syncs it, renames it and syncs the directory.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	tmp := name + ".tmp"
	if err := writeSynced(fsys, tmp, data, perm); err != nil {
		_ = fsys.Remove(tmp) // leaves nothing behind on a full disk; the error that counts is the first
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	f, err := fsys.OpenFile(name, createNew, perm)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
