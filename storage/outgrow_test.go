package storage_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// storeAll stores each batch as an entry, all of them in one call, as raft does under load.
func (l *log) storeAll(data ...[]byte) error {
	var entries []*raft.Log
	for i, d := range data {
		b := &storage.Batch{Data: d}
		if err := b.Check(); err != nil {
			return err
		}
		p := &storage.Proposal{Batches: []*storage.Batch{b}}
		handle, err := l.Propose(p)
		if err != nil {
			return err
		}
		defer l.Withdraw(p)
		entries = append(entries, &raft.Log{Index: l.last() + 1 + uint64(i), Term: l.term, Type: raft.LogCommand, Data: handle})
	}
	return l.StoreLogs(entries)
}

// cannotBegin are the ways in which the next segment cannot begin, though there is room for what it would hold.
func cannotBegin() map[string][]vfs.Fault {
	return map[string][]vfs.Fault{
		"rename, disk full":      {{Op: vfs.OpRename, Name: ".seg", Keep: true, Err: syscall.ENOSPC}},
		"rename, room in spare":  {{Op: vfs.OpRename, Name: ".seg", Keep: true, Err: syscall.ENOSPC}, {Op: vfs.OpAllocate, Name: ".seg", Err: syscall.ENOSPC}},
		"directory, descriptors": {{Op: vfs.OpSyncDir, Keep: true, Err: syscall.EMFILE}},
	}
}

// Where the next segment cannot begin in the middle of what is stored as one, the current one takes the rest: nothing is lost,
// and nothing ends.
func TestASegmentGrowsWhereTheNextCannotBegin(t *testing.T) {
	t.Parallel()
	for name, faults := range cannotBegin() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewFaulty(vfs.NewMem())
			l := openLog(t, "j", storage.Options{FS: disk, SegmentBytes: 4 << 10})
			n := 0
			some := func(entries int) (data [][]byte) {
				for range entries {
					data = append(data, plain(fmt.Sprint(n, strings.Repeat("v", 100)), 1))
					n++
				}
				return data
			}
			must(t, l.storeAll(some(3)...))
			for _, f := range faults {
				disk.Inject(f)
			}
			must(t, l.storeAll(some(60)...)) // several segments' worth
			for range 3 {
				before := n
				if err := l.storeAll(some(60)...); storage.Refused(err) { // at the beginning of a call it may be
					n = before
				} else {
					must(t, err)
				}
			}
			must(t, l.Err())
			disk.Heal()
			must(t, l.storeAll(some(60)...))
			l.Commit(l.last())
			want := l.contents(0)
			must(t, l.Close())
			l = openLog(t, "j", l.opts)
			if _, end := l.Bounds(0); end != int64(n) || string(l.contents(0)) != string(want) {
				t.Errorf("the journal ends at %d, want %d, with the same bytes", end, n)
			}
			l.put(0, some(1)...)
		})
	}
}

// A follower's call is no other.
func TestACopyGrowsWhereTheNextSegmentCannotBegin(t *testing.T) {
	t.Parallel()
	for name, faults := range cannotBegin() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openLog(t, "leader", storage.Options{FS: vfs.NewMem()})
			for i := range 120 {
				l.put(0, plain(fmt.Sprint(i, strings.Repeat("v", 100)), 1))
			}
			disk := vfs.NewFaulty(vfs.NewMem())
			other := openLog(t, "j", storage.Options{FS: disk, SegmentBytes: 4 << 10})
			take := func(n uint64) error {
				var entries []*raft.Log
				for i := other.last() + 1; i <= min(other.last()+n, l.last()); i++ {
					frame, err := l.Frame(i)
					must(t, err)
					entries = append(entries, &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Extensions: frame})
				}
				return other.StoreLogs(entries)
			}
			must(t, take(3))
			for _, f := range faults {
				disk.Inject(f)
			}
			must(t, take(60))
			must(t, other.Err())
			disk.Heal()
			must(t, take(1000))
			other.Commit(other.last())
			if got, want := other.End(), l.End(); got != want || string(other.contents(0)) != string(l.contents(0)) {
				t.Errorf("the copy ends at %+v, want %+v, with the same bytes", got, want)
			}
		})
	}
}
