package node

import (
	"errors"
	"io/fs"
	"syscall"
)

// ErrConfig marks an error that the user mends in a file or on the command line,
// beside those of type configs.Problems.
var ErrConfig = errors.New("configuration")

// ErrEnvironment marks an error of what Daybook needs around it: a folder it may
// not write, a broker or database that can't be reached.
var ErrEnvironment = errors.New("environment")

// unwritable reports whether an error says that Daybook may not write where it has to: a
// system does not count a disk mounted read-only among the missing permissions.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
