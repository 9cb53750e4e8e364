package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/internal/vfs"
)

// forgotten is the value of doubtKey of a journal that may be without any of its entries, also those that a cut of the
// power never takes.
var forgotten = []byte{2}

// Succeed makes, in the directory to, the journal that takes the place of a damaged log of commands in from, which is
// closed: it has no entries, but raft's term and vote, and is in doubt: see Forgot. What was cut off is begun again; from is
// not changed. The error is ErrCannotRepair if it is not known any more whom the journal voted for.
func Succeed(fsys vfs.FS, from, to string) error {
	was, fresh, err := openStart(fsys, from)
	if err != nil {
		return err
	}
	defer was.close()
	if fresh {
		return fmt.Errorf("%s: %w: neither copy of the start file can be read", from, ErrCannotRepair)
	}
	if err := errors.Join(fsys.MkdirAll(to, 0o755), fsys.SyncDir(to)); err != nil {
		return err
	}
	next, _, err := openStart(fsys, to)
	if err != nil {
		return err
	}
	defer next.close()
	next.front, next.values = newTail(), map[string][]byte{doubtKey: forgotten}
	for k, v := range was.values {
		if !slices.Contains([]string{firstKey, bootKey, doubtKey}, k) {
			next.values[k] = v
		}
	}
	if err := next.write(); err != nil {
		return err
	}
	return fsys.SyncDir(to)
}

// Forgot says whether the journal is in doubt because it took the place of a damaged one. It may lack entries that no cut
// of the power takes, those that say who the members are among them, so asking the members it knows does not tell what it
// had. It stays so until EndDoubt.
func (j *Journal) Forgot() bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return bytes.Equal(j.start.values[doubtKey], forgotten)
}
