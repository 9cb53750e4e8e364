package file

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/daybook-data/daybook/pipeline"
)

// errBroken says that a part does not read back as it was written.
var errBroken = errors.New("it does not read back as it was written")

// judge turns errors that waiting does not mend into a StopError.
func judge(where string, err error) error {
	if err == nil || errors.As(err, new(*pipeline.StopError)) {
		return err
	}
	stop := &pipeline.StopError{Where: where, Err: err}
	switch {
	case errors.Is(err, errBroken):
		stop.Code, stop.Fix = "disk-broken", "replace the disk and start again: the sink goes on from what is durable"
	case errors.Is(err, syscall.EXDEV):
		stop.Code, stop.Fix = "folder-on-other-device", "keep all folders of the path on one file system, or begin the path below the place where they part"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		stop.Code, stop.Fix = "folder-taken", "move the file away that stands where a folder should be, or change the path"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		stop.Code, stop.Fix = "folder-read-only", "let the user that runs daybook write there"
	default:
		return err
	}
	return stop
}
