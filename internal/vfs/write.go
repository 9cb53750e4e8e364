package vfs

import "io"

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

// zeroFill is Allocate where the system has none: it writes zeroes beyond the present size.
func zeroFill(f File, off, n int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	zero := make([]byte, 1<<20)
	for at, end := max(off, size), off+n; at < end; {
		m := min(end-at, int64(len(zero)))
		if _, err := f.WriteAt(zero[:m], at); err != nil {
			return err
		}
		at += m
	}
	return nil
}
