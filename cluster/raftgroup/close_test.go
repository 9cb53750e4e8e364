package raftgroup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// A leader that is heard by all, and whose appends no other member stores, closes all the same: what comes of them is
// unknown.
func TestALeaderWhoseAppendsNobodyStoresCloses(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaulty(vfs.OS{})
	m := startMembers(t, storage.Options{FS: disk}, "a", "b", "c")
	lead := m.leader("")
	m.append(lead, 3, "before")
	lead = m.leader("")
	stalled := make(chan struct{})
	defer close(stalled)
	for id, dir := range m.dirs {
		if id != lead {
			disk.Inject(vfs.Fault{Op: vfs.OpWrite, Name: dir, Keep: true, Stall: stalled})
		}
	}
	last := func() uint64 {
		i, err := m.groups[lead].Journal().LastIndex()
		must(t, err)
		return i
	}
	before := last()
	answer := make(chan error, 1)
	b := &storage.Batch{Data: storagetest.Batch("nobody stores it")}
	must(t, m.groups[lead].Append(context.Background(), []*storage.Batch{b}, func(err error) { answer <- err }))
	m.until("the append to be on its way", func() bool { return last() > before })
	closed := make(chan error, 1)
	go func() { closed <- m.groups[lead].Close() }()
	select {
	case err := <-closed:
		must(t, err)
	case <-time.After(60 * time.Second):
		t.Fatal("it does not close")
	}
	if err := <-answer; !errors.Is(err, raftgroup.ErrUnknownOutcome) && !errors.Is(err, raftgroup.ErrNotLeader) {
		t.Errorf("the append says %v, want that nobody knows", err)
	}
}
