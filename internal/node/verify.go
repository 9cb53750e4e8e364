package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	var paths []string
	for _, pattern := range []string{"*.seg", "meta/*.seg", "streams/*/*/*.seg"} {
		segments, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, s := range segments {
			if p := filepath.Dir(s); len(paths) == 0 || paths[len(paths)-1] != p {
				paths = append(paths, p)
			}
		}
	}
	if len(paths) == 0 {
		return fmt.Errorf("%w: no journal in or below %s", ErrEnvironment, dir)
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

// claim takes the lock of a data directory, so that no process opens it meanwhile. A
// directory without one is a single journal, or a copy: that has a lock of its own.
func claim(dir string) (release func(), err error) {
	path := filepath.Join(dir, "lock")
	if _, err := os.Stat(path); err != nil {
		return func() {}, nil
	}
	lock, err := vfs.OS{}.Lock(path)
	var locked *vfs.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("%w: %w: stop it first, or copy the folder and look at the copy", ErrEnvironment, err)
	}
	if unwritable(err) {
		return nil, fmt.Errorf("%w: %w: a journal is locked while it is looked at; copy the folder and look at the copy", ErrEnvironment, err)
	}
	if err != nil {
		return nil, err
	}
	return func() { lock.Close() }, nil
}
