package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// What the system refuses where the next segment begins refuses the append, and ends nothing: nothing was written.
func TestASegmentThatCannotBeginRefusesTheAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault vfs.Fault
		want  error
	}{
		{vfs.Fault{Op: vfs.OpOpen, Name: "spare-", Keep: true, Err: syscall.EMFILE}, storage.ErrNoFiles},
		{vfs.Fault{Op: vfs.OpOpen, Name: "spare-", Keep: true, Err: syscall.ENFILE}, storage.ErrNoFiles},
		{vfs.Fault{Op: vfs.OpOpen, Name: "spare-", Keep: true, Err: syscall.ENOSPC}, storage.ErrDiskFull},
		{vfs.Fault{Op: vfs.OpRename, Name: ".seg", Keep: true, Err: syscall.ENOSPC}, storage.ErrDiskFull},
	} {
		t.Run(fmt.Sprint(c.fault.Op, " ", c.fault.Err), func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewFaulty(vfs.NewMem())
			now := time.UnixMilli(1)
			l := openLog(t, "j", storage.Options{FS: disk, SegmentBytes: 4 << 10, Now: func() time.Time { return now }})
			n := 0
			fill := func(more int) (err error) {
				for range more {
					if err = l.store(&storage.Batch{Data: plain(fmt.Sprint(n, strings.Repeat("v", 100)), 1)}); err != nil {
						return err
					}
					n++
				}
				return nil
			}
			must(t, fill(1))
			disk.Inject(c.fault)
			for range 3 {
				if err := fill(100); !errors.Is(err, c.want) || !errors.Is(err, c.fault.Err) {
					t.Fatalf("an append where no segment can begin: got %v, want %v", err, c.want)
				}
			}
			l.Commit(l.last())
			l.SetRetention(storage.Retention{Age: time.Second})
			now = now.Add(time.Hour)
			if _, err := l.Retain(); !errors.Is(err, c.want) {
				t.Fatalf("retention where no segment can begin: got %v, want %v", err, c.want)
			}
			l.SetRetention(storage.Retention{})
			must(t, l.Err())
			disk.Heal()
			must(t, fill(100))
			l.Commit(l.last())
			must(t, l.Close())
			l = openLog(t, "j", l.opts)
			if _, end := l.Bounds(0); end != int64(n) {
				t.Errorf("the journal ends at %d, want %d", end, n)
			}
		})
	}
}

// A copy that cannot begin its next segment takes the same frames later.
func TestACopyWaitsForASegmentThatCannotBegin(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for i := range 100 {
		l.put(0, plain(fmt.Sprint(i, strings.Repeat("v", 100)), 1))
	}
	disk := vfs.NewFaulty(vfs.NewMem())
	other := openLog(t, "j", storage.Options{FS: disk, SegmentBytes: 4 << 10})
	disk.Inject(vfs.Fault{Op: vfs.OpOpen, Name: "spare-", Keep: true, Err: syscall.EMFILE})
	for end := other.End(); ; end = other.End() {
		f, err := l.FramesAfter(end.Index, 1)
		must(t, err)
		err = other.StoreReceived(bytes.Join(f.Pieces, nil))
		f.Release()
		if errors.Is(err, storage.ErrNoFiles) {
			break
		}
		must(t, err)
	}
	must(t, other.Err())
	disk.Heal()
	copyInto(t, other.Journal, l, 1000)
	if got, want := other.End(), l.End(); got != want {
		t.Errorf("the copy ends at %+v, want %+v", got, want)
	}
}
