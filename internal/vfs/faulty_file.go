package vfs

// faultyFile is a file of a Faulty.
type faultyFile struct {
	File
	fs   *Faulty
	name string
	has  *int64 // bytes it holds; guarded by fs.mu
}

var _ File = (*faultyFile)(nil)

// ReadAt implements File.
func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	hit := f.fs.check(OpRead, f.name)
	if hit != nil && hit.Flip == 0 {
		return 0, hit.Err
	}
	n, err := f.File.ReadAt(p, off)
	if hit != nil && n > 0 {
		p[hit.Flip/8%n] ^= 1 << (hit.Flip % 8)
	}
	return n, err
}

// WriteAt implements File.
func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.WritevAt([][]byte{p}, off)
	return int(n), err
}

// WritevAt implements File.
func (f *faultyFile) WritevAt(buffers [][]byte, off int64) (int64, error) {
	hit := f.fs.check(OpWrite, f.name)
	var total int64
	for _, b := range buffers {
		total += int64(len(b))
	}
	if hit != nil && hit.Lie {
		return total, nil
	}
	if hit != nil {
		n, err := f.File.WritevAt(firstBytes(buffers, hit.Short), off)
		if err != nil {
			return n, err
		}
		return n, hit.Err
	}
	if err := f.fs.grow(OpWrite, f.name, f.has, off+total); err != nil {
		return 0, err
	}
	return f.File.WritevAt(buffers, off)
}

// firstBytes cuts buffers to n bytes in all.
func firstBytes(buffers [][]byte, n int) [][]byte {
	var first [][]byte
	for _, b := range buffers {
		if n <= 0 {
			break
		}
		b = b[:min(len(b), n)]
		first, n = append(first, b), n-len(b)
	}
	return first
}

// Sync implements File.
func (f *faultyFile) Sync() error {
	if hit := f.fs.check(OpSync, f.name); hit != nil {
		return hit.Err
	}
	return f.File.Sync()
}

// Truncate implements File.
func (f *faultyFile) Truncate(size int64) error {
	if hit := f.fs.check(OpTruncate, f.name); hit != nil {
		return hit.Err
	}
	if err := f.fs.grow(OpTruncate, f.name, f.has, size); err != nil {
		return err
	}
	f.fs.shrink(f.has, size)
	return f.File.Truncate(size)
}

// Allocate implements File.
func (f *faultyFile) Allocate(off, n int64) error {
	if hit := f.fs.check(OpAllocate, f.name); hit != nil {
		return hit.Err
	}
	if err := f.fs.grow(OpAllocate, f.name, f.has, off+n); err != nil {
		return err
	}
	return f.File.Allocate(off, n)
}
