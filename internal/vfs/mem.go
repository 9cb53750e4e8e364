package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"math"
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
// Its disk model: a change of a file is in doubt until Sync of the file; creating, renaming and removing a name is in
// doubt until SyncDir of its directory. A cut keeps any subset of what is in doubt, each write sector by sector; see
// [Mem.Doubts].
type Mem struct {
	mu      sync.Mutex // guards all below and the contents of all nodes
	names   map[string]*node
	durable map[string]*node // what names meant at the last SyncDir of their directory
	renamed []nameChange     // since then, in order
	dirs    map[string]bool
	locks   map[string]bool
	seq     int // numbers the changes
}

var _ FS = (*Mem)(nil)

// node is the contents of a file, now and at its last Sync.
type node struct {
	data    []byte
	shared  bool     // data is also somebody's synced: it is copied before it is changed
	synced  []byte   // never changed in place
	pending []change // since the last Sync, in order
}

// change is one change of a file's contents.
type change struct {
	seq  int
	op   Op // OpWrite, OpTruncate or OpAllocate
	off  int64
	data []byte // of a write
	size int64  // of the others
}

// nameChange is one change of a directory: a name is taken away, given, or both in one step.
type nameChange struct {
	seq       int
	op        Op // OpOpen (created), OpRename or OpRemove
	gone, now string
	node      *node // what now means
}

func (c *nameChange) in(dir string) bool {
	return c.gone != "" && path.Dir(c.gone) == dir || c.now != "" && path.Dir(c.now) == dir
}

func (c *nameChange) apply(names map[string]*node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.now != "" {
		names[c.now] = c.node
	}
}

// apply makes the change to data, which must not be shared, and returns the result.
func (c *change) apply(data []byte) []byte {
	switch c.op {
	case OpWrite:
		data = grown(data, c.off+int64(len(c.data)))
		copy(data[c.off:], c.data)
	case OpTruncate:
		data = grown(data[:min(c.size, int64(len(data)))], c.size)
	case OpAllocate:
		data = grown(data, c.size)
	}
	return data
}

// change makes a change to a file. The caller holds mu.
func (m *Mem) change(n *node, c change) {
	m.seq++
	c.seq = m.seq
	if n.shared {
		n.data, n.shared = bytes.Clone(n.data), false
	}
	n.data = c.apply(n.data)
	n.pending = append(n.pending, c)
}

// rename changes names. The caller holds mu.
func (m *Mem) rename(c nameChange) {
	m.seq++
	c.seq = m.seq
	c.apply(m.names)
	m.renamed = append(m.renamed, c)
}

func (n *node) sync() { n.synced, n.shared, n.pending = n.data, true, nil }

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{names: map[string]*node{}, durable: map[string]*node{}, dirs: map[string]bool{}, locks: map[string]bool{}}
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
		m.rename(nameChange{op: OpOpen, now: name, node: n})
	}
	if flag&os.O_TRUNC != 0 && len(n.data) > 0 {
		m.change(n, change{op: OpTruncate})
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
	m.rename(nameChange{op: OpRename, gone: oldName, now: newName, node: n})
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	switch {
	case m.names[name] != nil:
		m.rename(nameChange{op: OpRemove, gone: name})
	case m.dirs[name]:
		delete(m.dirs, name)
	default:
		return &os.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
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
	var rest []nameChange
	for _, c := range m.renamed {
		if c.in(name) {
			c.apply(m.durable)
		} else {
			rest = append(rest, c)
		}
	}
	m.renamed = rest
	return nil
}

// Space implements FS: memory has no end.
func (m *Mem) Space(string) (free, total int64, err error) { return math.MaxInt64, math.MaxInt64, nil }

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
