package nginx

import (
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// memory is a disk of which a test knows every call. Before each, meanwhile may do to
// it what other processes do. Keys of files that are gone are given out again at once,
// the lowest first, as ext4 does.
type memory struct {
	now       time.Time
	meanwhile func()
	files     map[string]*node
	used      map[uint64]bool
	trace     func(format string, args ...any)
}

// node is a file; it lives as long as it has a name or is open.
type node struct {
	disk    *memory
	key     uint64
	text    []byte
	changed time.Time
	refs    int
}

func newMemory(now time.Time) *memory {
	return &memory{now: now, meanwhile: func() {}, files: map[string]*node{}, used: map[uint64]bool{}, trace: func(string, ...any) {}}
}

const modelFolder = "/logs"

func (m *memory) create(name string) *node {
	key := uint64(1)
	for m.used[key] {
		key++
	}
	m.used[key] = true
	n := &node{disk: m, key: key, changed: m.now, refs: 1}
	m.unlink(name)
	m.files[name] = n
	m.trace("create %s as %d", path.Base(name), key)
	return n
}

func (m *memory) unlink(name string) {
	if n := m.files[name]; n != nil {
		delete(m.files, name)
		m.trace("unlink %s, which is %d", path.Base(name), n.key)
		n.release()
	}
}

func (m *memory) rename(from, to string) {
	n := m.files[from]
	if n == nil {
		return
	}
	m.unlink(to)
	delete(m.files, from)
	m.files[to] = n
	m.trace("rename %s to %s, which is %d", path.Base(from), path.Base(to), n.key)
}

func (n *node) release() {
	if n.refs--; n.refs == 0 {
		delete(n.disk.used, n.key)
	}
}

func (n *node) write(b []byte) {
	n.text = append(n.text, b...)
	n.changed = n.disk.now
	n.disk.trace("write %.14q to %d, now of %d bytes", b, n.key, len(n.text))
}

func (n *node) truncate() {
	n.disk.trace("truncate %d of %d bytes", n.key, len(n.text))
	n.text, n.changed = nil, n.disk.now
}

func (n *node) status() status {
	return status{key: fileKey{1, n.key}, size: int64(len(n.text)), changed: n.changed, regular: true}
}

// glob implements disk.
func (m *memory) glob(pattern string) []string {
	m.meanwhile()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if ok, _ := path.Match(pattern, name); ok {
			paths = append(paths, name)
		}
	}
	return paths
}

// list implements disk. A folder that is read while files are renamed may show a file
// under both names or under neither.
func (m *memory) list(string) ([]string, error) {
	m.meanwhile()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if m.meanwhile(); m.files[name] != nil {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

// stat implements disk.
func (m *memory) stat(name string) (status, error) {
	m.meanwhile()
	if n := m.files[name]; n != nil {
		return n.status(), nil
	}
	return status{}, fs.ErrNotExist
}

// open implements disk.
func (m *memory) open(name string) (handle, error) {
	m.meanwhile()
	n := m.files[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	n.refs++
	return &memoryHandle{node: n}, nil
}

type memoryHandle struct {
	node   *node
	closed bool
}

func (h *memoryHandle) ReadAt(b []byte, off int64) (int, error) {
	h.node.disk.meanwhile()
	if h.closed {
		return 0, fs.ErrClosed
	}
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	n := 0
	if off < int64(len(h.node.text)) {
		n = copy(b, h.node.text[off:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memoryHandle) stat() (status, error) {
	h.node.disk.meanwhile()
	if h.closed {
		return status{}, fs.ErrClosed
	}
	return h.node.status(), nil
}

func (h *memoryHandle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	h.node.release()
	return nil
}
