package nginx

import (
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
)

// A file is known again by its contents: the first bytes that were read of it and
// the last ones before the place where reading goes on. Together with the length
// these tell a file from one that got its inode, from what was written after a
// truncation, and tell that a copy or a compressed file is the same log.
const (
	headLength = 1024
	tailLength = 256
)

// fingerprint is a number of bytes and their hash.
type fingerprint struct {
	Length int    `json:"n"`
	Hash   uint64 `json:"h"`
}

func fingerprintOf(b []byte) fingerprint { return fingerprint{len(b), xxhash.Sum64(b)} }

// standsAt reports whether the content has bytes of this fingerprint at the offset.
func (f fingerprint) standsAt(c content, off int64) (bool, error) {
	if off < 0 {
		return false, nil
	}
	b := make([]byte, f.Length)
	n, err := c.ReadAt(b, off)
	if n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			return false, nil // shorter
		}
		return false, err
	}
	return fingerprintOf(b) == f, nil
}

// readFull reads as many bytes as are there, up to n.
func readFull(c content, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := c.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:got], err
}
