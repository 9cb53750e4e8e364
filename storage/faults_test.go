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
		if err != nil && (s.l.Err() != nil || !storage.Refused(err)) {
			return err
		}
	}
	return s.l.Close()
}

func (s *script) append(value string) error {
	b := &storage.Batch{Data: batch(batchSpec{values: []string{value}})}
	s.trying = append(s.trying, value)
	if err := s.l.store(b); err != nil {
		if storage.Refused(err) {
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
// second time. An error that only says that there is no room, on the disk or for open files, ends nothing, unless it comes where
// space was promised.
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

// A bit that flips between the disk and us, in whatever read: the start refuses or gives the same answers, and so does a
// read that serves.
func TestABitThatFlipsOnTheWayIsNoticed(t *testing.T) {
	t.Parallel()
	whole := newScript(t)
	must(t, whole.run())
	written := whole.mem.Crash(whole.mem.Doubts())
	want, reads := whole.served(written, nil)
	if reads < 10 {
		t.Fatalf("the start reads %d times", reads)
	}
	for nth := 1; nth <= reads; nth++ {
		for _, bit := range []int{1, 77, 300, 1000, 4001, 9999} {
			got, _ := whole.served(written.Crash(nil), &vfs.Fault{Op: vfs.OpRead, Nth: nth, Flip: bit})
			if got != nil && !bytes.Equal(got, want) {
				t.Fatalf("bit %d of read %d of %d: other bytes are served than were written", bit, nth, reads)
			}
		}
	}
}

// served opens a disk and reads it, with a fault on the way; nil if that was refused as damage. It counts reads.
func (s *script) served(disk *vfs.Mem, fault *vfs.Fault) (data []byte, reads int) {
	faulty := vfs.NewFaulty(disk)
	if fault != nil {
		faulty.Inject(*fault)
	}
	o := s.o
	o.FS = faulty
	l, err := tryOpen(s.t, "j", o)
	if isDamage(err) {
		return nil, 0
	}
	must(s.t, err)
	defer l.Close()
	data, err = l.tryContents(0)
	if isDamage(err) {
		return nil, 0
	}
	must(s.t, err)
	return append(data, 0), faulty.Count(vfs.OpRead) // never nil
}

// A disk that does not answer stops nobody but who waits for it: what was stored is read, a journal beside goes on, and
// when the disk answers the append is what it would have been.
func TestAStalledSyncHoldsUpNoReader(t *testing.T) {
	t.Parallel()
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		disk := vfs.NewFaulty(vfs.OS{})
		l := openLog(t, t.TempDir(), storage.Options{FS: disk})
		l.put(0, plain("before", 2))
		want := l.contents(0)
		release, stuck := make(chan struct{}), make(chan struct{})
		disk.Inject(vfs.Fault{Op: op, Name: ".seg", Stall: release, Stalled: stuck})
		done := make(chan error)
		go func() { done <- l.store(&storage.Batch{Data: plain("stuck", 1)}) }()
		<-stuck
		if got := l.contents(0); !bytes.Equal(got, want) {
			t.Errorf("%s: while it stalls, other bytes are read than were stored", op)
		}
		if _, end := l.Bounds(0); end != 2 {
			t.Errorf("%s: while it stalls, the end is %d, want 2", op, end)
		}
		select {
		case err := <-done:
			t.Errorf("%s: the append was answered before the disk: %v", op, err)
		default:
		}
		close(release)
		must(t, <-done)
		l.Commit(l.last())
		if _, end := l.Bounds(0); end != 3 {
			t.Errorf("%s: the end is %d, want 3", op, end)
		}
	}
}

// An index file or a segment that cannot be read is an error of the disk, not the absence of data: the start says so and
// changes nothing, and the next one finds everything (a store that answered "does not exist" was believed, and its
// replicas deleted).
func TestAnUnreadableDiskIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	whole := newScript(t)
	must(t, whole.run())
	for _, name := range []string{".seg", "mark", "start."} {
		disk := whole.mem.Crash(whole.mem.Doubts())
		faulty := vfs.NewFaulty(disk)
		faulty.Inject(vfs.Fault{Op: vfs.OpRead, Name: name, Keep: true})
		o := whole.o
		o.FS = faulty
		if _, err := tryOpen(t, "j", o); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s cannot be read: got %v, want the disk's error", name, err)
		}
		if err := whole.restarts(disk.Crash(nil)); err != nil {
			t.Errorf("after %s could not be read: %v", name, err)
		}
	}
	disk := vfs.NewFaulty(whole.mem.Crash(whole.mem.Doubts()))
	o := whole.o
	o.FS = disk
	l, err := tryOpen(t, "j", o)
	must(t, err)
	disk.Inject(vfs.Fault{Op: vfs.OpRead, Keep: true})
	if got, err := l.tryContents(0); !errors.Is(err, syscall.EIO) || len(got) > 0 {
		t.Errorf("reading gave %d bytes, %v; want the disk's error", len(got), err)
	}
}

// The point that is known to be on stable storage is of each journal alone.
func TestOneJournalsSyncVouchesForNoOther(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := storage.Options{FS: mem, Mode: storage.Replicated, FlushEvery: 1 << 62}
	a, err := storage.Open("a", o)
	must(t, err)
	defer a.Close()
	b, err := storage.Open("b", o)
	must(t, err)
	defer b.Close()
	for _, j := range []*storage.Journal{a, b} {
		l := &log{t: t, Journal: j, term: 1}
		l.put(0, plain("x", 4))
	}
	must(t, b.Flush())
	disk := mem.Crash(nil)
	for name, want := range map[string]int64{"a": 0, "b": 4} {
		l, err := tryOpen(t, name, storage.Options{FS: disk})
		must(t, err)
		if _, end := l.Bounds(0); end != want {
			t.Errorf("journal %s ends at %d, want %d", name, end, want)
		}
	}
}
