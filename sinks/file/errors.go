package file

import (
	"errors"
	"fmt"
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
	case errors.Is(err, fs.ErrNotExist):
		// The disk may be mounted again, so this is not for ever.
		return fmt.Errorf("%s was taken away while the sink was writing: %w (put it back or mount its disk, and the sink goes on; if it is gone for good start daybook again, which says how to write all of it anew)", where, err)
	default:
		return err
	}
	return stop
}
