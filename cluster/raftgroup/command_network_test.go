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
	"github.com/daybook-data/daybook/storage"
)

// A state machine on three nodes: what was applied is applied on all of them, once, through the death of its leader and
// the dead one's return.
func TestACommandGroupSurvivesItsLeader(t *testing.T) {
	t.Parallel()
	net := newNetwork(t, transport.Options{})
	ids := []string{"a", "b", "c"}
	var peers []raft.Server
	dirs, groups, states := map[string]string{}, map[string]*raftgroup.Machine{}, map[string]*counts{}
	for _, id := range ids {
		peers = append(peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
		dirs[id] = t.TempDir()
	}
	start := func(id string) {
		tr, err := net.start(id).Group(transport.GroupID{15: 2})
		must(t, err)
		groups[id], states[id] = openFSM(t, raftgroup.Options{
			Dir: dirs[id], ID: id, Transport: tr, Peers: peers, Timeout: time.Second, Journal: storage.Options{SegmentBytes: 8 << 10},
		})
	}
	for _, id := range ids {
		start(id)
	}
	applied := 0
	// applyOne gives a command of its own to whoever leads; one whose outcome is unknown counts as none.
	applyOne := func() (leader string) {
		deadline := time.Now().Add(30 * time.Second)
		for time.Now().Before(deadline) {
			for id, g := range groups {
				if _, self := g.Leader(); !self {
					continue
				}
				applied++
				_, err := g.Apply(context.Background(), fmt.Appendf(nil, "command %d", applied))
				if err == nil {
					return id
				}
				if !errors.Is(err, raftgroup.ErrNotLeader) && !errors.Is(err, raftgroup.ErrUnknownOutcome) {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond) // a poll with a deadline
		}
		t.Fatal("nobody leads")
		return ""
	}
	same := func() {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		last := fmt.Sprint("command ", applied)
		for id, c := range states {
			for c.of(last) == 0 {
				if time.Now().After(deadline) {
					t.Fatalf("%s has not applied %s", id, last)
				}
				time.Sleep(time.Millisecond) // a poll with a deadline
			}
		}
		for id, c := range states { // all of them have the last one by now, so each has all before it
			for i := range applied {
				command := fmt.Sprint("command ", i+1)
				if got, want := c.of(command), states["a"].of(command); got != want || got > 1 {
					t.Errorf("%s applied %s %d times, a %d times", id, command, got, want)
				}
			}
		}
	}
	var leader string
	for range 50 {
		leader = applyOne()
	}
	same()
	net.stop(leader)
	must(t, groups[leader].Close())
	delete(groups, leader)
	for range 50 {
		applyOne()
	}
	start(leader)
	applyOne()
	same()
}
