package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// workDir is the directory that a server keeps its data in.
type workDir struct {
	path string
	lock *os.File // nil for a directory of the caller's, which we don't remove
}

// workDir returns the wanted directory, created if needed, or if that is empty a
// new one below the cache that Close removes. Those that killed processes left
// behind are removed on the way.
func (c cache) workDir(ctx context.Context, want, name string) (*workDir, error) {
	if want != "" {
		path, err := filepath.Abs(want)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		path, err = filepath.EvalSymlinks(path) // as the servers tell it
		return &workDir{path: path}, err
	}
	run := filepath.Join(c.dir, "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		return nil, err
	}
	// Under this lock a directory without a holder is one that was left behind,
	// not one that is just being made.
	guard, err := lockFile(ctx, filepath.Join(run, "lock"))
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if err := removeLeft(run); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(run, name+"-")
	if err != nil {
		return nil, err
	}
	lock, err := tryLockFile(path + ".lock")
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &workDir{path: path, lock: lock}, nil
}

// temporary says whether the directory goes with Close.
func (w *workDir) temporary() bool { return w.lock != nil }

// Close removes the directory if it is ours.
func (w *workDir) Close() error {
	if !w.temporary() {
		return nil
	}
	return errors.Join(os.RemoveAll(w.path), os.Remove(w.lock.Name()), w.lock.Close())
}

// removeLeft removes the directories whose lock nobody holds.
func removeLeft(run string) error {
	entries, err := os.ReadDir(run)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(run, e.Name())
		lock, err := tryLockFile(path + ".lock")
		if err != nil {
			continue // in use
		}
		if err := (&workDir{path: path, lock: lock}).Close(); err != nil {
			return err
		}
	}
	return nil
}
