package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxVectors is the kernel's IOV_MAX.
const maxVectors = 1024

// Sync implements File by fdatasync, which also writes the size if it changed.
func (f *osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return wrap("fdatasync", f.Name(), err)
		}
	}
}

// Space implements FS by statfs.
func (OS) Space(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, wrap("statfs", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

// Allocate implements File by fallocate.
func (f *osFile) Allocate(off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, off, n)
		switch err {
		case unix.EINTR:
			continue
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return zeroFill(f, off, n)
		}
		return wrap("fallocate", f.Name(), err)
	}
}

// WritevAt implements File by pwritev, in as few calls as the kernel allows.
func (f *osFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	var done int64
	for len(buffers) > 0 {
		n, err := unix.Pwritev(int(f.Fd()), buffers[:min(len(buffers), maxVectors)], off+done)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, wrap("pwritev", f.Name(), err)
		}
		done += int64(n)
		rest, split := skip(buffers, n)
		if split > 0 { // a short write: finish the buffer it ended in, then go on with whole ones
			m, err := f.WriteAt(rest[0][split:], off+done)
			done += int64(m)
			if err != nil {
				return done, err
			}
			rest = rest[1:]
		}
		buffers = rest
	}
	return done, nil
}

// skip drops the first n bytes of buffers: it returns what remains and how much of its first buffer is done.
func skip(buffers [][]byte, n int) (rest [][]byte, split int) {
	for len(buffers) > 0 && n >= len(buffers[0]) {
		n -= len(buffers[0])
		buffers = buffers[1:]
	}
	return buffers, n
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}
