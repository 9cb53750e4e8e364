package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"strings"
	"syscall"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// script is a run in which everything happens that writes to the disk. It goes on after a refusal, and ends where the
// journal ends.
type script struct {
	t      testing.TB
	mem    *vfs.Mem
	disk   *vfs.Faulty
	o      storage.Options
	acked  []string // values of the records of partition 0, by offset
	trying []string // after them, one that may be stored or not
	vote   uint64
	l      *log

	synced map[string]bool // files of which a sync failed since the last open
	retry  string          // one that was synced again
}

func newScript(t testing.TB) *script {
	s := &script{t: t, mem: vfs.NewMem(), synced: map[string]bool{}}
	s.disk = vfs.NewFaulty(s.mem)
	s.o = storage.Options{FS: s.disk, SegmentBytes: 4 << 10, Retention: storage.Retention{Bytes: 16 << 10}}
	s.disk.Before = func(op vfs.Op, name string) {
		if op == vfs.OpSync && s.synced[name] {
			s.retry = name
		}
	}
	return s
}

// open opens the journal; a start that fails may be tried again.
func (s *script) open() error {
	clear(s.synced)
	j, err := storage.Open("j", s.o)
	if err != nil {
		s.noteSync(err)
		return err
	}
	s.l = &log{t: s.t, opts: s.o, Journal: j, term: 1}
	s.l.Commit(s.l.last())
	return nil
}

// noteSync remembers the file whose sync failed.
func (s *script) noteSync(err error) {
	var path *fs.PathError
	if errors.As(err, &path) && path.Op == string(vfs.OpSync) {
		s.synced[path.Path] = true
	}
}

func (s *script) run() error {
	if err := s.open(); err != nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	for step := range 60 {
		var err error
		switch {
		case step%15 == 7:
			err = s.l.SetUint64([]byte("CurrentTerm"), s.vote+1)
			if err == nil {
				s.vote++
			}
		case step%15 == 11:
			_, err = s.l.Retain()
		case step%15 == 13:
			err = s.cut()
		case step == 35:
			err = s.l.Close()
			if err == nil {
				err = s.open()
			}
		case step%15 == 14:
			_, err = s.l.TrimBefore(1, 0)
		default:
			err = s.append(fmt.Sprint("value", step, strings.Repeat("v", step*17%900)))
		}
		if err != nil {
			s.noteSync(err)
		}
		if err != nil && (s.l.Err() != nil || !errors.Is(err, storage.ErrDiskFull)) {
			return err
		}
	}
	return s.l.Close()
}

func (s *script) append(value string) error {
	b := &storage.Batch{Data: batch(batchSpec{values: []string{value}})}
	s.trying = append(s.trying, value)
	if err := s.l.store(b); err != nil {
		if errors.Is(err, storage.ErrDiskFull) {
			s.trying = s.trying[:len(s.trying)-1] // nothing of it was done
		}
		return err
	}
	s.l.Commit(s.l.last())
	if b.Offset != int64(len(s.acked)) {
		s.t.Fatalf("got offset %d, want %d", b.Offset, len(s.acked))
	}
	s.acked = append(s.acked, value)
	return nil
}

// cut stores a tail that is never committed, and cuts it off.
func (s *script) cut() error {
	keep := s.l.last()
	if keep == 0 {
		return nil
	}
	for range 8 {
		if err := s.l.store(&storage.Batch{Partition: 1, Data: plain("uncommitted", 9)}); err != nil {
			return err
		}
	}
	return s.l.DeleteRange(keep+1, s.l.last())
}

// check compares a journal with what was acknowledged.
func (s *script) check(l *log) error {
	all, err := l.tryContents(0)
	if err != nil {
		return err
	}
	first, end := l.Bounds(0)
	if end < int64(len(s.acked)) || first > 0 && first >= end {
		return fmt.Errorf("the partition is %d to %d, %d were acknowledged", first, end, len(s.acked))
	}
	for i, offset := range offsets(all) {
		if offset != first+int64(i) {
			return fmt.Errorf("offset %d where %d should be", offset, first+int64(i))
		}
	}
	for rest, at := all, first; len(rest) > 0; at++ {
		h, err := storage.ParseHeader(rest)
		if err != nil {
			return err
		}
		if at < int64(len(s.acked)) && !bytes.Contains(rest[:h.Size()], []byte(s.acked[at])) {
			return fmt.Errorf("record %d is another one", at)
		}
		if at >= int64(len(s.acked)) && !contains(s.trying, rest[:h.Size()]) {
			return fmt.Errorf("record %d was never written", at)
		}
		rest = rest[h.Size():]
	}
	return nil
}

func contains(values []string, data []byte) bool {
	for _, v := range values {
		if bytes.Contains(data, []byte(v)) {
			return true
		}
	}
	return false
}

// ended checks a journal that gave up: it says so, writes nothing more, and serves what it has.
func (s *script) ended() error {
	if s.l == nil {
		return nil
	}
	if s.l.Err() == nil {
		return errors.New("an operation failed, and the journal goes on")
	}
	if s.l.Err() == storage.ErrClosed {
		return nil
	}
	writes, syncs := s.disk.Count(vfs.OpWrite), s.disk.Count(vfs.OpSync)
	if err := s.l.store(&storage.Batch{Data: plain("x", 1)}); err == nil {
		return errors.New("an append after the failure was taken")
	}
	_, _ = s.l.Retain()
	_ = s.l.SetUint64([]byte("CurrentTerm"), 99)
	_ = s.l.Flush()
	if s.disk.Count(vfs.OpWrite) != writes || s.disk.Count(vfs.OpSync) != syncs {
		return errors.New("the journal writes after it failed")
	}
	if err := s.check(s.l); err != nil {
		return fmt.Errorf("reading after the failure (%w): %w", s.l.Err(), err)
	}
	_ = s.l.Close()
	if s.retry != "" {
		return fmt.Errorf("the sync of %s failed and was tried again", s.retry)
	}
	return nil
}

// restarts opens what a cut leaves of the disk.
func (s *script) restarts(disk *vfs.Mem) error {
	o := s.o
	o.FS = disk
	l, err := tryOpen(s.t, "j", o)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := s.check(l); err != nil {
		return err
	}
	if vote, err := l.GetUint64([]byte("CurrentTerm")); err != nil || vote < s.vote || vote > s.vote+1 {
		return fmt.Errorf("term is %d (%v), acknowledged was %d", vote, err, s.vote)
	}
	_, end := l.Bounds(0)
	if got := l.put(0, plain("more", 1))[0]; got != end {
		return fmt.Errorf("the next record got offset %d, want %d", got, end)
	}
	return nil
}

// Whatever operation on the disk fails, and whichever time: what was acknowledged is there, is served meanwhile, and
// survives the power cut that often follows; the journal says that it has ended, writes no more, and tries no sync a
// second time. An error that only says that the disk is full ends nothing, unless it comes where space was promised.
func TestEveryOperationMayFail(t *testing.T) {
	t.Parallel()
	whole := newScript(t)
	must(t, whole.run())
	rng := rand.New(rand.NewSource(1))
	for op, faults := range map[vfs.Op][]vfs.Fault{
		vfs.OpOpen:     {{Err: syscall.EIO}, {Err: syscall.EMFILE}},
		vfs.OpWrite:    {{Err: syscall.EIO}, {Err: syscall.ENOSPC}, {Err: syscall.EIO, Short: 1}, {Err: syscall.ENOSPC, Short: 700}},
		vfs.OpSync:     {{Err: syscall.EIO}, {Err: syscall.ENOSPC}},
		vfs.OpAllocate: {{Err: syscall.EIO}, {Err: syscall.ENOSPC}},
		vfs.OpRename:   {{Err: syscall.EIO}, {Err: syscall.ENOSPC}},
		vfs.OpRemove:   {{Err: syscall.EIO}},
		vfs.OpSyncDir:  {{Err: syscall.EIO}},
		vfs.OpRead:     {{Err: syscall.EIO}},
	} {
		total := whole.disk.Count(op)
		if total == 0 {
			t.Errorf("the script has no %s", op)
		}
		for nth := 1; nth <= total; nth++ {
			for _, fault := range faults {
				s := newScript(t)
				fault.Op, fault.Nth = op, nth
				s.disk.Inject(fault)
				what := fmt.Sprintf("%s %d of %d fails with %v after %d bytes", op, nth, total, fault.Err, fault.Short)
				err := s.run()
				if err != nil {
					err = s.ended()
				}
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				for i, disk := range []*vfs.Mem{s.mem.Crash(nil), s.mem.Crash(s.mem.Doubts()), s.mem.CrashClone(rng)} {
					if err := s.restarts(disk); err != nil {
						t.Fatalf("%s: restart %d: %v", what, i, err)
					}
				}
			}
		}
	}
}
