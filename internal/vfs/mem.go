package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path"
	"sort"
	"strings"
	"sync"
	"time"
)

// Mem is a file system in memory that remembers what a power cut would leave. The zero value is not ready; use
// NewMem. Safe for concurrent use.
//
// Its disk model: a write is in doubt until Sync of its file; creating, renaming and removing a name is in doubt until
// SyncDir of its directory; operations in doubt survive a cut or not, each write sector by sector.
type Mem struct {
	mu      sync.Mutex // guards all below and the contents of all nodes
	names   map[string]*node
	durable map[string]*node // what names meant at the last SyncDir of their directory
	dirs    map[string]bool
	locks   map[string]bool
}

var _ FS = (*Mem)(nil)

// sector is what a disk writes whole or not at all.
const sector = 512

// node is the contents of a file, now and at its last Sync.
type node struct {
	data   []byte
	synced []byte
	dirty  [][2]int64 // ranges written since the last Sync, in order
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{names: map[string]*node{}, durable: map[string]*node{}, dirs: map[string]bool{}, locks: map[string]bool{}}
}

// CrashClone returns the file system as a power cut at this moment could leave it: all that was synced, and of the
// rest what rng picks (nil: nothing). Locks are free in the clone.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	clone := NewMem()
	for d := range m.dirs {
		clone.dirs[d] = true
	}
	copies := map[*node]*node{}
	keep := func(name string, n *node) {
		if copies[n] == nil {
			copies[n] = n.crash(rng)
		}
		clone.names[name], clone.durable[name] = copies[n], copies[n]
	}
	for _, name := range m.allNames() {
		now, then := m.names[name], m.durable[name]
		if now != then && rng != nil && rng.Intn(2) == 0 {
			then = now
		}
		if then != nil {
			keep(name, then)
		}
	}
	return clone
}

func (m *Mem) allNames() []string {
	set := map[string]bool{}
	for n := range m.names {
		set[n] = true
	}
	for n := range m.durable {
		set[n] = true
	}
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// crash returns a copy of what the disk holds of n.
func (n *node) crash(rng *rand.Rand) *node {
	disk := bytes.Clone(n.synced)
	for _, r := range n.dirty {
		for at := r[0]; at < r[1] && rng != nil; {
			end := min(r[1], at-at%sector+sector)
			if rng.Intn(2) == 0 && end <= int64(len(n.data)) {
				disk = grown(disk, end)
				copy(disk[at:end], n.data[at:end])
			}
			at = end
		}
	}
	return &node{data: disk, synced: bytes.Clone(disk)}
}

func grown(b []byte, size int64) []byte {
	if int64(len(b)) < size {
		b = append(b, make([]byte, size-int64(len(b)))...)
	}
	return b
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	n := m.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n != nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case n == nil && !m.dirs[path.Dir(name)]:
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n == nil:
		n = &node{}
		m.names[name] = n
	}
	if flag&os.O_TRUNC != 0 {
		n.data = nil
	}
	return &memFile{fs: m, name: name, node: n}, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldName, newName = path.Clean(oldName), path.Clean(newName)
	n := m.names[oldName]
	if n == nil {
		return &os.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	delete(m.names, oldName)
	m.names[newName] = n
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if m.names[name] == nil && !m.dirs[name] {
		return &os.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.names, name)
	delete(m.dirs, name)
	return nil
}

// MkdirAll implements FS. Directories are durable at once.
func (m *Mem) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := path.Clean(name); !m.dirs[d]; d = path.Dir(d) {
		m.dirs[d] = true
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if !m.dirs[name] {
		return nil, &os.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var names []string
	for n := range m.names {
		if path.Dir(n) == name {
			names = append(names, path.Base(n))
		}
	}
	for d := range m.dirs {
		if path.Dir(d) == name && d != name {
			names = append(names, path.Base(d))
		}
	}
	sort.Strings(names)
	return names, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if n := m.names[name]; n != nil {
		return memInfo{name: path.Base(name), size: int64(len(n.data))}, nil
	}
	if m.dirs[name] {
		return memInfo{name: path.Base(name), dir: true}, nil
	}
	return nil, &os.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	for n := range m.durable {
		if path.Dir(n) == name && m.names[n] == nil {
			delete(m.durable, n)
		}
	}
	for n, node := range m.names {
		if path.Dir(n) == name {
			m.durable[n] = node
		}
	}
	return nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if m.locks[name] {
		return nil, &LockedError{Path: name, Holder: "this process"}
	}
	m.locks[name] = true
	return &memLock{fs: m, name: name}, nil
}

type memLock struct {
	fs   *Mem
	name string
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

type memInfo struct {
	name string
	size int64
	dir  bool
}

func (i memInfo) Name() string       { return strings.TrimPrefix(i.name, "/") }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
