package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// VerifyJournals checks every byte of the journals below dir, prints a line for each and one
// for each fault, and returns how many faults there are.
func VerifyJournals(ctx context.Context, dir string, out io.Writer) (faults int, err error) {
	err = eachJournal(ctx, dir, func(path string) error {
		r, err := storage.Verify(path)
		if err != nil {
			return fmt.Errorf("verifying %s: %w", path, err)
		}
		verdict := "ok"
		if len(r.Problems) > 0 {
			verdict = "DAMAGED"
		}
		if _, err := fmt.Fprintf(out, "%s: %s: %d segments, %d frames, %d batches, %d records, %d bytes, positions %d to %d\n",
			path, verdict, r.Segments, r.Frames, r.Batches, r.Records, r.Bytes, r.FirstPosition, r.EndPosition); err != nil {
			return err
		}
		for _, p := range r.Problems {
			faults++
			if _, err := fmt.Fprintf(out, "  %v\n", p); err != nil {
				return err
			}
		}
		return nil
	})
	return faults, err
}

// DumpJournals prints every frame and batch of the journals below dir.
func DumpJournals(ctx context.Context, dir string, out io.Writer) error {
	return eachJournal(ctx, dir, func(path string) error {
		if _, err := fmt.Fprintf(out, "journal %s\n", path); err != nil {
			return err
		}
		return storage.Dump(path, out)
	})
}

// eachJournal calls f for each journal of a data directory that no process has open, or for
// dir itself where that is one.
func eachJournal(ctx context.Context, dir string, f func(path string) error) error {
	paths, err := journalPaths(dir)
	if err != nil {
		return err
	}
	release, err := claim(dir)
	if err != nil {
		return err
	}
	defer release()
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// journalPaths finds the journals of a data directory, or dir itself where that is one. One
// that has lost all its segments still has its start file.
func journalPaths(dir string) (paths []string, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	for _, pattern := range []string{"start.[01]", "*.seg", "meta/start.[01]", "meta/*.seg", "streams/*/*/start.[01]", "streams/*/*/*.seg"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, s := range files {
			if p := filepath.Dir(s); !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: no journal in or below %s", ErrEnvironment, dir)
	}
	return paths, nil
}

// claim takes the lock of a data directory, so that no process opens it meanwhile. A
// directory without one is a single journal, or a copy: that has a lock of its own. One that
// cannot be written to is locked for reading, which shows that no process has it open.
func claim(dir string) (release func(), err error) {
	path := filepath.Join(dir, "lock")
	if _, err := os.Stat(path); err != nil {
		return func() {}, nil
	}
	lock, err := vfs.OS{}.Lock(path)
	if unwritable(err) {
		lock, err = readLock(path)
	}
	var locked *vfs.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("%w: %w, such as a copy of this one", ErrEnvironment, err)
	}
	if err != nil {
		return nil, err
	}
	return func() { lock.Close() }, nil
}

// readLock takes a lock that keeps writers away, of a file that can only be read.
func readLock(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &vfs.LockedError{Path: path, Holder: "another process"}
	}
	return f, nil
}
