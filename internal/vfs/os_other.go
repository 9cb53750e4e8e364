//go:build !linux

package vfs

import (
	"io"
	"math"
)

// Space implements FS. It is not known on this system: the disk is taken for endless.
func (OS) Space(string) (free, total int64, err error) { return math.MaxInt64, math.MaxInt64, nil }

// Allocate implements File by writing zeroes.
func (f *osFile) Allocate(off, n int64) error { return zeroFill(f, off, n) }

// WritevAt implements File by one write for each buffer.
func (f *osFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	return writeEach(f, buffers, off)
}

// writeEach is WritevAt for files without a vectored write.
func writeEach(f io.WriterAt, buffers [][]byte, off int64) (int64, error) {
	var done int64
	for _, b := range buffers {
		n, err := f.WriteAt(b, off+done)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
