package vfs

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// Watch wraps an FS and knows which operations that change the disk are on their way, and since when, so that somebody
// can tell a disk that has stopped answering: the operation itself cannot. Safe for concurrent use.
type Watch struct {
	FS

	mu      sync.Mutex // guards all below
	running map[*Pending]struct{}
	done    WatchTotals
}

var _ FS = (*Watch)(nil)

// Pending is an operation that has not returned.
type Pending struct {
	Op    Op
	Name  string
	Since time.Time
}

// WatchTotals counts what a Watch saw return.
type WatchTotals struct {
	Syncs    int64
	SyncTime time.Duration // of all of them together
	Longest  time.Duration // of any operation
}

// NewWatch returns base, watched.
func NewWatch(base FS) *Watch {
	return &Watch{FS: base, running: map[*Pending]struct{}{}}
}

// Oldest returns the operation that has been on its way for longest; ok is false if there is none.
func (w *Watch) Oldest() (oldest Pending, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.running {
		if !ok || p.Since.Before(oldest.Since) {
			oldest, ok = *p, true
		}
	}
	return oldest, ok
}

// Totals returns what was counted.
func (w *Watch) Totals() WatchTotals {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// begin notes an operation; the caller must call what it returns when the operation has returned.
func (w *Watch) begin(op Op, name string) (end func()) {
	p := &Pending{Op: op, Name: name, Since: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[p] = struct{}{}
	return func() {
		took := time.Since(p.Since)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, p)
		w.done.Longest = max(w.done.Longest, took)
		if op == OpSync || op == OpSyncDir {
			w.done.Syncs++
			w.done.SyncTime += took
		}
	}
}

// OpenFile implements FS.
func (w *Watch) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	defer w.begin(OpOpen, name)()
	f, err := w.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &watchedFile{File: f, watch: w}, nil
}

// Rename implements FS.
func (w *Watch) Rename(oldName, newName string) error {
	defer w.begin(OpRename, newName)()
	return w.FS.Rename(oldName, newName)
}

// Remove implements FS.
func (w *Watch) Remove(name string) error {
	defer w.begin(OpRemove, name)()
	return w.FS.Remove(name)
}

// SyncDir implements FS.
func (w *Watch) SyncDir(name string) error {
	defer w.begin(OpSyncDir, name)()
	return w.FS.SyncDir(name)
}

// watchedFile is a file of a Watch.
type watchedFile struct {
	File
	watch *Watch
}

var (
	_ File   = (*watchedFile)(nil)
	_ Mapper = (*watchedFile)(nil)
)

// errNotMapped says that the file below has no mappings.
var errNotMapped = errors.New("file cannot be mapped")

// Map implements Mapper where the file below does.
func (f *watchedFile) Map(size int64) (*Mapping, error) {
	m, ok := f.File.(Mapper)
	if !ok {
		return nil, errNotMapped
	}
	return m.Map(size)
}

// WriteAt implements File.
func (f *watchedFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.watch.begin(OpWrite, f.Name())()
	return f.File.WriteAt(p, off)
}

// WritevAt implements File.
func (f *watchedFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	defer f.watch.begin(OpWrite, f.Name())()
	return f.File.WritevAt(buffers, off)
}

// Sync implements File.
func (f *watchedFile) Sync() error {
	defer f.watch.begin(OpSync, f.Name())()
	return f.File.Sync()
}

// Truncate implements File.
func (f *watchedFile) Truncate(size int64) error {
	defer f.watch.begin(OpTruncate, f.Name())()
	return f.File.Truncate(size)
}

// Allocate implements File.
func (f *watchedFile) Allocate(off, n int64) error {
	defer f.watch.begin(OpAllocate, f.Name())()
	return f.File.Allocate(off, n)
}
