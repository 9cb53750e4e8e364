package vfs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

var _ Mapper = (*osFile)(nil)

// PageBytes is the size of the pages that a Mapping is advised about.
const PageBytes = 4096

// Mapping is a file in memory: the pages of the kernel's cache themselves, not copies. It outlives the file's Close and
// is safe for concurrent use, but for Close. Touching a page that the disk cannot read, or that was cut off the file,
// is a fault (SIGBUS): see debug.SetPanicOnFault.
type Mapping struct {
	// Bytes are the file's bytes. They change when the file is written to.
	Bytes []byte

	file *os.File
}

// Map implements Mapper, on machines with pages of 4 KiB. The kernel is told to read nothing on its own account beside the pages that are touched:
// what comes next is known better here.
func (f *osFile) Map(size int64) (*Mapping, error) {
	if os.Getpagesize() != PageBytes {
		return nil, wrap("mmap", f.Name(), unix.ENOTSUP)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, wrap("mmap", f.Name(), err)
	}
	_ = unix.Madvise(b, unix.MADV_RANDOM) // advice
	return &Mapping{Bytes: b, file: f.File}, nil
}

// WillNeed starts reading a range into memory and does not wait for it.
func (m *Mapping) WillNeed(off, n int64) {
	_ = unix.Madvise(m.pages(off, n), unix.MADV_WILLNEED) // advice
}

// Populate waits until a range is in memory. Touching what is not would do so as well, but keep a whole processor of
// the scheduler waiting with it: it cannot know of page faults, as it does of system calls. What cannot be read, or on
// a kernel before 5.14, is left to be found by touching it.
func (m *Mapping) Populate(off, n int64) {
	_ = unix.Madvise(m.pages(off, n), unix.MADV_POPULATE_READ)
}

// Forget lets go of the memory that holds a range. What was not yet written to the disk stays.
func (m *Mapping) Forget(off, n int64) {
	b := m.pages(off, n)
	_ = unix.Madvise(b, unix.MADV_DONTNEED) // else the next call spares the pages, as they are in use; advice
	_ = unix.Fadvise(int(m.file.Fd()), off, n, unix.FADV_DONTNEED)
}

// Resident sets the lowest bit of vec[i] if page i of the range that begins at off is in memory, and clears it if not.
// off must be a multiple of PageBytes.
func (m *Mapping) Resident(off, n int64, vec []byte) {
	b := m.pages(off, n)
	pages := (len(b) + PageBytes - 1) / PageBytes
	if len(b) == 0 || len(vec) < pages {
		return
	}
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		clear(vec)
	}
}

// pages is the range, begun at a page.
func (m *Mapping) pages(off, n int64) []byte {
	end := min(off+n, int64(len(m.Bytes)))
	off = min(off&^(PageBytes-1), end)
	return m.Bytes[off:end]
}

// Close ends the mapping; its bytes must not be touched any more.
func (m *Mapping) Close() error { return unix.Munmap(m.Bytes) }
