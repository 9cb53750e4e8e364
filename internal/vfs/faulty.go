package vfs

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Op names the operations that can be made to fail.
type Op string

// The operations of FS and File that Faulty counts and fails.
const (
	OpOpen     Op = "open"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpSync     Op = "sync"
	OpTruncate Op = "truncate"
	OpAllocate Op = "allocate"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpSyncDir  Op = "syncdir"
)

// Fault says which operation fails and how.
type Fault struct {
	Op   Op
	Name string // only files whose name contains it; empty: all
	Nth  int    // the n-th matching operation from now, counted from 1; 0 is 1
	Keep bool   // and every one after it
	Err  error  // what it returns; nil: EIO
	// Short is for OpWrite: so many bytes are written before the error.
	Short int
	// Lie makes the operation do nothing and return nil: a disk that acknowledges what it does not do.
	Lie bool
	// Flip is for OpRead: the read succeeds, with this bit of what it returns flipped (counted from its first byte,
	// round and round). Zero flips nothing; 8 is the lowest bit of the second byte.
	Flip int
	// Stall makes the operation wait until the channel is closed, and then go on as if nothing had been.
	Stall <-chan struct{}
	// Stalled, if not nil, is closed when an operation begins to wait for Stall.
	Stalled chan<- struct{}
}

// Faulty wraps an FS and makes chosen operations fail. It also counts operations, and can bound the space files may
// grow by. Safe for concurrent use.
type Faulty struct {
	FS

	// Before, if not nil, is called before every operation that is counted. Set it before the first one.
	Before func(op Op, name string)

	mu     sync.Mutex // guards all below
	faults []*Fault
	counts map[Op]int
	sizes  map[string]*int64 // by name; open files share the pointer, so it follows them through renames
	space  int64             // bytes that files may still grow by; negative: no bound
}

var _ FS = (*Faulty)(nil)

// NewFaulty returns base with no faults.
func NewFaulty(base FS) *Faulty {
	return &Faulty{FS: base, counts: map[Op]int{}, sizes: map[string]*int64{}, space: -1}
}

// Inject adds a fault.
func (f *Faulty) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault.Nth = max(fault.Nth, 1)
	f.faults = append(f.faults, &fault)
}

// Heal removes all faults and the bound on space.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.space = nil, -1
}

// Limit lets files grow by n more bytes in all; then growing fails with ENOSPC. Removing and truncating files that
// were grown through f gives their bytes back. A negative n lifts the bound.
func (f *Faulty) Limit(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space = n
}

// Count returns how many operations of a kind were tried.
func (f *Faulty) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// check counts an operation and returns the fault that hits it, or nil. It waits where a fault says so.
func (f *Faulty) check(op Op, name string) *Fault {
	if f.Before != nil {
		f.Before(op, name)
	}
	hit := f.hit(op, name)
	if hit != nil && hit.Stall != nil {
		if hit.Stalled != nil {
			close(hit.Stalled)
		}
		<-hit.Stall
		return nil
	}
	return hit
}

func (f *Faulty) hit(op Op, name string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op]++
	for _, r := range f.faults {
		if r.Op != op || !strings.Contains(name, r.Name) {
			continue
		}
		if r.Nth--; r.Nth == 0 || r.Nth < 0 && r.Keep {
			hit := *r
			if hit.Err == nil {
				hit.Err = syscall.EIO
			}
			hit.Err = &os.PathError{Op: string(op), Path: name, Err: hit.Err}
			if hit.Lie {
				hit.Err = nil
			}
			return &hit
		}
	}
	return nil
}

// grow takes the space a file needs to reach size, or says that there is none.
func (f *Faulty) grow(op Op, name string, has *int64, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	need := size - *has
	if need <= 0 {
		return nil
	}
	if f.space >= 0 {
		if need > f.space {
			return &os.PathError{Op: string(op), Path: name, Err: syscall.ENOSPC}
		}
		f.space -= need
	}
	*has = size
	return nil
}

// shrink gives back what a file holds above size.
func (f *Faulty) shrink(has *int64, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.giveBack(has, size)
}

// giveBack is shrink for callers that hold mu. has may be nil.
func (f *Faulty) giveBack(has *int64, size int64) {
	if has == nil || *has <= size {
		return
	}
	if f.space >= 0 {
		f.space += *has - size
	}
	*has = size
}

// OpenFile implements FS.
func (f *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if hit := f.check(OpOpen, name); hit != nil && hit.Err != nil {
		return nil, hit.Err
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	has := f.sizes[name]
	if has == nil {
		has = new(int64)
		f.sizes[name] = has
		*has = size
	}
	f.giveBack(has, size) // it was opened with O_TRUNC
	return &faultyFile{File: file, fs: f, name: name, has: has}, nil
}

// Rename implements FS.
func (f *Faulty) Rename(oldName, newName string) error {
	if hit := f.check(OpRename, newName); hit != nil {
		return hit.Err
	}
	if err := f.FS.Rename(oldName, newName); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.giveBack(f.sizes[newName], 0)
	f.sizes[newName] = f.sizes[oldName]
	delete(f.sizes, oldName)
	return nil
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if hit := f.check(OpRemove, name); hit != nil {
		return hit.Err
	}
	if err := f.FS.Remove(name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.giveBack(f.sizes[name], 0)
	delete(f.sizes, name)
	return nil
}

// Space implements FS: what Limit left, if there is a bound.
func (f *Faulty) Space(dir string) (free, total int64, err error) {
	free, total, err = f.FS.Space(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.space >= 0 {
		free = f.space
	}
	return free, total, err
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(name string) error {
	if hit := f.check(OpSyncDir, name); hit != nil {
		return hit.Err
	}
	return f.FS.SyncDir(name)
}
