//go:build !linux

package vfs

// Allocate implements File by writing zeroes.
func (f *osFile) Allocate(off, n int64) error { return zeroFill(f, off, n) }

// WritevAt implements File by one write for each buffer.
func (f *osFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	return writeEach(f, buffers, off)
}
