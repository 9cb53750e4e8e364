package storage

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrDiskFull refuses an append before anything of it was done; it succeeds again once there is space.
	ErrDiskFull = errors.New("no space left for the journal: free disk space or lower the retention; appends resume by themselves")
	// ErrNoFiles refuses an append before anything of it was done, as the file it would go to cannot be opened; it succeeds
	// again once there are descriptors.
	ErrNoFiles = errors.New("too many files are open to begin another one of the journal: raise the limit of open files (ulimit -n, LimitNOFILE) or close connections; appends resume by themselves")
	// ErrBatchTooLarge refuses a batch above MaxBatchBytes.
	ErrBatchTooLarge = errors.New("record batch is larger than 12 MiB")
	// ErrCorruptBatch says that a batch's checksum or length does not fit its bytes.
	ErrCorruptBatch = errors.New("record batch is corrupt")
	// ErrInvalidBatch says that a batch is whole but breaks a rule of the format.
	ErrInvalidBatch = errors.New("record batch is invalid")
	// ErrTxnState says that a producer mixed transactional and plain batches, or ended a transaction it does not own.
	ErrTxnState = errors.New("batch does not fit the producer's transaction")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("journal is closed")
)

// Refused says whether an error is one of those that refuse an append before anything of it was done, and go away when there
// is room again: ErrDiskFull and ErrNoFiles.
func Refused(err error) bool { return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrNoFiles) }

// refusal makes what a system says of a full disk, or of too many open files, the error that refuses an append.
func refusal(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w (%w)", ErrDiskFull, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w (%w)", ErrNoFiles, err)
	}
	return err
}

// A SequenceError refuses a batch of an idempotent producer that is neither the next one nor one of its last five.
type SequenceError struct {
	Producer  int64
	Partition uint32
	Got, Want int32
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("producer %d, partition %d: batch starts at sequence %d, expected %d", e.Producer, e.Partition, e.Got, e.Want)
}

// An EpochError refuses a batch of a producer that a newer incarnation has fenced.
type EpochError struct {
	Producer     int64
	Partition    uint32
	Got, Current int16
}

func (e *EpochError) Error() string {
	return fmt.Sprintf("producer %d, partition %d: epoch %d is older than %d", e.Producer, e.Partition, e.Got, e.Current)
}

// A RangeError says that an offset is not in the partition: below its start or beyond its end.
type RangeError struct {
	Partition          uint32
	Offset, Start, End int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("partition %d: offset %d is outside %d to %d", e.Partition, e.Offset, e.Start, e.End)
}

// A DamageError says that bytes on disk are not those that were written. Nothing of the range is ever served.
type DamageError struct {
	File     string
	Position uint64 // journal position of the damaged frame or batch
	End      uint64 // end of the damaged range; 0 if it is not known
	Offset   int64  // the file offset of Position
	Reason   string
	Err      error // the disk's, where it did not give the bytes; nil where it gave others
}

func (e *DamageError) Unwrap() error { return e.Err }

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at file offset %d (journal position %d): %s; keep the directory. What other nodes have is mended from them while the node runs (\"daybook cluster status\" says what is not); a node alone is to be stopped, looked at with \"daybook journal verify\", and restored from a backup",
		e.File, e.Offset, e.Position, e.Reason)
}

// A failure is the first error of a journal that had to become read-only.
type failure struct{ err error }

func (f *failure) Error() string {
	return fmt.Sprintf("journal is read-only after an error: %v; restart the node once the cause is gone", f.err)
}
func (f *failure) Unwrap() error { return f.err }
