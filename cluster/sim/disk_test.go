package sim_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// disk is a machine's disk. It outlives processes, and power cuts in part.
type disk struct {
	mu    sync.Mutex // guards all below
	mem   *vfs.Mem
	rng   *rand.Rand
	slow  time.Duration // the most that a sync takes
	stall chan struct{} // closed when the disk answers again; nil: it does
	stuck chan struct{} // the same of segments alone
	lies  bool          // syncs do nothing
	lying bool          // those of segments don't, for a while
	owed  []vfs.File    // files of which a sync was not done while lying
}

func newDisk(seed int64, slow time.Duration) *disk {
	return &disk{mem: vfs.NewMem(), rng: rand.New(rand.NewSource(seed)), slow: slow}
}

// hang makes writes and syncs wait until the returned function is called.
func (d *disk) hang() (release func()) { return d.hold(&d.stall) }

// stick is hang for segments alone.
func (d *disk) stick() (release func()) { return d.hold(&d.stuck) }

func (d *disk) hold(at *chan struct{}) (release func()) {
	c := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	if *at != nil {
		return func() {} // it hangs already
	}
	*at = c
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		*at = nil
		close(c)
	}
}

// latency is how long the next operation on a file takes, and what it has to wait for.
func (d *disk) latency(op vfs.Op, name string) (takes time.Duration, stall chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stall = d.stall; stall == nil && isSegment(name) {
		stall = d.stuck
	}
	if op == vfs.OpSync {
		takes = 20*time.Microsecond + time.Duration(d.rng.Int63n(int64(d.slow)))
	}
	return takes, stall
}

// cut is a power cut: of what is not synced a random part stays.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	odds := [...]float64{0, 0.5, 0.9, 1}[d.rng.Intn(4)]
	var kept []vfs.Doubt
	for _, x := range d.mem.Doubts() {
		if d.rng.Float64() < odds {
			kept = append(kept, x)
		}
	}
	d.mem = d.mem.Crash(kept)
}

// wipe is a new disk.
func (d *disk) wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem = vfs.NewMem()
}

// rot flips a bit in a segment of dir that is not the last, at a journal position that may rot. It says where; -1 if there
// is none.
func (d *disk) rot(dir string, may func(position int64) bool) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.mem.ReadDir(dir)
	if err != nil {
		return -1
	}
	names = slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) != ".seg" })
	if len(names) < 2 {
		return -1
	}
	name := names[d.rng.Intn(len(names)-1)]
	f, err := d.mem.OpenFile(path.Join(dir, name), 0, 0)
	if err != nil {
		return -1
	}
	base := baseOf(name)
	if base < 0 {
		return -1
	}
	size, _ := f.Size()
	at := d.rng.Int63n(size)
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil || !may(base+at) {
		return -1
	}
	b[0] ^= 1 << d.rng.Intn(8)
	if _, err := f.WriteAt(b[:], at); err != nil {
		return -1
	}
	return base + at
}

// baseOf is the journal position at which a segment begins; -1 if the name is not one of a segment.
func baseOf(name string) (base int64) {
	if _, err := fmt.Sscanf(name, "%d.seg", &base); err != nil {
		return -1
	}
	return base
}

// errKilled is what a process that is no more gets from its disk.
var errKilled = errors.New("the process was killed")

// mount is what one process sees of its machine's disk. When the process is killed nothing of it reaches the disk any
// more, whatever its goroutines still try.
type mount struct {
	*vfs.Faulty
	d *disk

	mu    sync.RWMutex // held while an operation is carried out; kill waits for it
	dead  bool
	gone  chan struct{} // closed by kill
	locks []io.Closer
}

var _ vfs.FS = (*mount)(nil)

func (d *disk) mount() *mount {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &mount{Faulty: vfs.NewFaulty(d.mem), d: d, gone: make(chan struct{})}
}

// kill takes the disk from the process.
func (m *mount) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return
	}
	m.dead = true
	close(m.gone)
	for _, l := range m.locks {
		_ = l.Close() // the kernel lets go of a dead process's locks
	}
}

// begin waits as long as the disk takes. The caller must call what it returns when the operation is over.
func (m *mount) begin(op vfs.Op, name string) (end func(), err error) {
	// Only what is written to under no other lock than the channel that waits for the disk may take time: the clock
	// stands still while somebody waits for a sync.Mutex.
	if base := path.Base(name); (op == vfs.OpSync || op == vfs.OpWrite) && (strings.HasSuffix(base, ".seg") || strings.HasPrefix(base, "spare-") || strings.HasPrefix(base, "start.")) {
		takes, stall := m.d.latency(op, base)
		if stall != nil {
			select {
			case <-stall:
			case <-m.gone:
			}
		}
		if takes > 0 {
			select {
			case <-time.After(takes):
			case <-m.gone:
			}
		}
	}
	m.mu.RLock()
	if m.dead {
		m.mu.RUnlock()
		return nil, errKilled
	}
	return m.mu.RUnlock, nil
}

// OpenFile implements vfs.FS.
func (m *mount) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	end, err := m.begin(vfs.OpOpen, name)
	if err != nil {
		return nil, err
	}
	defer end()
	f, err := m.Faulty.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	bare, err := m.d.bare(name)
	if err != nil {
		return nil, err
	}
	return &file{f, bare, m, name}, nil
}

// bare opens a file of the disk past the faults of mounts.
func (d *disk) bare(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mem.OpenFile(name, 0, 0)
}

// Rename implements vfs.FS.
func (m *mount) Rename(oldName, newName string) error {
	end, err := m.begin(vfs.OpRename, newName)
	if err != nil {
		return err
	}
	defer end()
	return m.Faulty.Rename(oldName, newName)
}

// Remove implements vfs.FS.
func (m *mount) Remove(name string) error {
	end, err := m.begin(vfs.OpRemove, name)
	if err != nil {
		return err
	}
	defer end()
	return m.Faulty.Remove(name)
}

// MkdirAll implements vfs.FS.
func (m *mount) MkdirAll(name string, perm fs.FileMode) error {
	end, err := m.begin(vfs.OpOpen, name)
	if err != nil {
		return err
	}
	defer end()
	return m.Faulty.MkdirAll(name, perm)
}

// SyncDir implements vfs.FS.
func (m *mount) SyncDir(name string) error {
	end, err := m.begin(vfs.OpSyncDir, name)
	if err != nil {
		return err
	}
	defer end()
	return m.Faulty.SyncDir(name)
}

// Lock implements vfs.FS.
func (m *mount) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errKilled
	}
	l, err := m.Faulty.Lock(name)
	if err != nil {
		return nil, err
	}
	m.locks = append(m.locks, l)
	return &lock{l, m}, nil
}

// lock is a lock of a process.
type lock struct {
	io.Closer
	m *mount
}

// Close implements io.Closer. Who was killed has no lock: another process may have it by now.
func (l *lock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.dead {
		return errKilled
	}
	l.m.locks = slices.DeleteFunc(l.m.locks, func(c io.Closer) bool { return c == l.Closer })
	return l.Closer.Close()
}

// file is a file that a process has open.
type file struct {
	vfs.File
	bare vfs.File // the same, without the mount's faults
	m    *mount
	name string
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	end, err := f.m.begin(vfs.OpRead, f.name)
	if err != nil {
		return 0, err
	}
	defer end()
	return f.File.ReadAt(p, off)
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	end, err := f.m.begin(vfs.OpWrite, f.name)
	if err != nil {
		return 0, err
	}
	defer end()
	return f.File.WriteAt(p, off)
}

// WritevAt implements vfs.File.
func (f *file) WritevAt(buffers [][]byte, off int64) (int64, error) {
	end, err := f.m.begin(vfs.OpWrite, f.name)
	if err != nil {
		return 0, err
	}
	defer end()
	return f.File.WritevAt(buffers, off)
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	end, err := f.m.begin(vfs.OpSync, f.name)
	if err != nil {
		return err
	}
	defer end()
	if f.m.d.pretends(f) {
		return nil
	}
	return f.File.Sync()
}

// pretends says whether the disk says of a file that it is synced without doing it.
func (d *disk) pretends(f *file) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lying && isSegment(f.name) {
		d.owed = append(d.owed, f.bare)
		return true
	}
	return d.lies
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	end, err := f.m.begin(vfs.OpTruncate, f.name)
	if err != nil {
		return err
	}
	defer end()
	return f.File.Truncate(size)
}

// Allocate implements vfs.File.
func (f *file) Allocate(off, n int64) error {
	end, err := f.m.begin(vfs.OpAllocate, f.name)
	if err != nil {
		return err
	}
	defer end()
	return f.File.Allocate(off, n)
}
