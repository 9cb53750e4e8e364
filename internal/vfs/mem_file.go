package vfs

import (
	"bytes"
	"io"
	"slices"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs   *Mem
	name string
	node *node
}

var _ File = (*memFile)(nil)

// Name implements File.
func (f *memFile) Name() string { return f.name }

// Close implements File.
func (f *memFile) Close() error { return nil }

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.change(f.node, change{op: OpWrite, off: off, data: bytes.Clone(p)})
	return len(p), nil
}

// WritevAt implements File.
func (f *memFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	n, err := f.WriteAt(slices.Concat(buffers...), off)
	return int64(n), err
}

// Sync implements File.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.node.sync()
	return nil
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.change(f.node, change{op: OpTruncate, size: size})
	return nil
}

// Allocate implements File.
func (f *memFile) Allocate(off, n int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if off+n > int64(len(f.node.data)) {
		f.fs.change(f.node, change{op: OpAllocate, size: off + n})
	}
	return nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.node.data)), nil
}
