package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	readOnly  = os.O_RDONLY
	createNew = os.O_RDWR | os.O_CREATE | os.O_TRUNC
)

// OS is the operating system's file system. Its zero value is ready.
type OS struct{}

var _ FS = OS{}

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

// Rename implements FS.
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// MkdirAll implements FS.
func (OS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

// Stat implements FS.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// SyncDir implements FS.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Lock implements FS by flock, which the kernel releases when the process ends however it ends. The file names the
// holder for the error message of the next one; it is left in place, because removing it would race with a newcomer.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if err != syscall.EWOULDBLOCK {
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
		return nil, &LockedError{Path: name, Holder: holder(f)}
	}
	me := fmt.Sprintf("process %d (%s)\n", os.Getpid(), strings.Join(shortArgs(os.Args), " "))
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(me), 0) // only for the message: a full disk must not keep us from starting
	}
	return f, nil
}

func holder(f *os.File) string {
	buf := make([]byte, 256)
	n, _ := f.ReadAt(buf, 0)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	if line == "" {
		return "another process"
	}
	return line
}

// shortArgs keeps the program's base name and its verb: arguments further on may hold what nobody should read.
func shortArgs(args []string) []string {
	short := []string{filepath.Base(args[0])}
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		short = append(short, args[1])
	}
	return short
}

// osFile adds the operations that package os lacks; those that differ between systems are in os_linux.go and
// os_other.go.
type osFile struct{ *os.File }

// Size implements File.
func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
