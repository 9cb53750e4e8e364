package vfs

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
