//go:build unix

package nginx

import (
	"io/fs"
	"syscall"
)

// keyOf returns what tells a file from others that exist at the same time.
func keyOf(_ string, info fs.FileInfo) fileKey {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileKey{}
	}
	return fileKey{Device: uint64(st.Dev), Inode: uint64(st.Ino)}
}
