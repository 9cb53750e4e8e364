package raftgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// A leader that can no longer read what it has to send ends, whatever of raft is waiting for the others' answers; the others
// go on without it.
func TestALeaderThatCannotReadItsLogEnds(t *testing.T) {
	t.Parallel()
	net := newNetwork(t, transport.Options{})
	var peers []raft.Server
	for _, id := range []string{"a", "b", "c"} {
		peers = append(peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	disks, groups := map[string]*vfs.Faulty{}, map[string]*raftgroup.Machine{}
	for _, p := range peers {
		id := string(p.ID)
		disks[id] = vfs.NewFaulty(vfs.OS{})
		tr, err := net.start(id).Group(transport.GroupID{15: 2})
		must(t, err)
		groups[id], _ = openFSM(t, raftgroup.Options{
			Dir: t.TempDir(), ID: id, Transport: tr, Peers: peers, Timeout: time.Second, Journal: storage.Options{FS: disks[id]},
		})
	}
	apply := func(command string) (leader string) {
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) { // a poll
			for id, g := range groups {
				if _, self := g.Leader(); !self {
					continue
				}
				_, err := g.Apply(context.Background(), []byte(command))
				if err == nil {
					return id
				}
				if !errors.Is(err, raftgroup.ErrNotLeader) && !errors.Is(err, raftgroup.ErrUnknownOutcome) {
					t.Fatal(err)
				}
			}
		}
		t.Fatalf("nobody takes %q", command)
		return ""
	}
	leader := ""
	for i := range 10 { // the others follow by pipeline then
		leader = apply(fmt.Sprint("before ", i))
	}
	disks[leader].Inject(vfs.Fault{Op: vfs.OpRead, Name: ".seg", Keep: true})
	failed := groups[leader]
	for i := 0; failed.Err() == nil; i++ {
		apply(fmt.Sprint("meanwhile ", i))
	}
	ended := make(chan error, 1)
	go func() { ended <- failed.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Logf("closing it: %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not close")
	}
	delete(groups, leader)
	apply("after")
}
