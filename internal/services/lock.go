package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile takes the exclusive lock on the file, creating it if needed, and
// waits for it until the context ends. The lock lasts until the returned file
// is closed or this process ends; children don't inherit it.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLockFile(path)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock on %s: %w", path, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLockFile is lockFile without waiting: the error is EWOULDBLOCK if another
// holds the lock.
func tryLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return f, nil
}
