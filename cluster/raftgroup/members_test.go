package raftgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// testGroup is the group that the members of a test are of.
var testGroup = transport.GroupID{15: 1}

// members are the members of one group, on nodes of their own.
type members struct {
	t       *testing.T
	net     *network
	timeout time.Duration
	// commitEvery is that of the groups.
	commitEvery time.Duration
	opts        storage.Options
	peers       []raft.Server
	groups      map[string]*raftgroup.Group
	dirs        map[string]string
}

func startMembers(t *testing.T, o storage.Options, ids ...string) *members {
	return startPatient(t, time.Second, o, ids...)
}

// startPatient is startMembers with another timeout than a second: on a busy machine a leader loses its lead by that.
func startPatient(t *testing.T, timeout time.Duration, o storage.Options, ids ...string) *members {
	m := prepareMembers(t, timeout, o, ids...)
	for _, id := range ids {
		m.start(id, m.peers)
	}
	return m
}

// prepareMembers is startPatient without the start.
func prepareMembers(t *testing.T, timeout time.Duration, o storage.Options, ids ...string) *members {
	m := &members{t: t, timeout: timeout, opts: o, groups: map[string]*raftgroup.Group{}, dirs: map[string]string{}}
	m.net = newNetwork(t, transport.Options{Silence: time.Second, Timeout: time.Second})
	for _, id := range ids {
		m.peers = append(m.peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return m
}

func (m *members) start(id string, peers []raft.Server) {
	m.t.Helper()
	if m.dirs[id] == "" {
		m.dirs[id] = m.t.TempDir()
	}
	tr, err := m.net.start(id).Group(testGroup)
	must(m.t, err)
	m.groups[id] = openGroup(m.t, raftgroup.Options{Dir: m.dirs[id], ID: id, Transport: tr, Peers: peers, Timeout: m.timeout, CommitEvery: m.commitEvery, Journal: m.opts})
}

// stop ends a node.
func (m *members) stop(id string) {
	m.net.stop(id)
	must(m.t, m.groups[id].Close())
	delete(m.groups, id)
}

// leader waits until one of the members that are not excluded leads.
func (m *members) leader(except string) string {
	m.t.Helper()
	var found string
	m.until("a leader", func() bool {
		for id, g := range m.groups {
			if _, self := g.Leader(); self && id != except {
				found = id
				return true
			}
		}
		return false
	})
	return found
}

// until polls until a state is reached.
func (m *members) until(what string, reached func() bool) {
	m.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		if time.Now().After(deadline) {
			m.t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}

// append appends to a member, or to who leads if a busy machine made it lose the lead.
func (m *members) append(id string, n int, tag string) {
	m.t.Helper()
	for i := range n {
		m.until("an append to "+id, func() bool {
			_, err := put(m.groups[id], uint32(i%3), fmt.Sprint(tag, i))
			if errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrUnknownOutcome) {
				id = m.leader("")
				return false
			}
			if err != nil {
				m.t.Fatalf("appending to %s: %v", id, err)
			}
			return true
		})
	}
}

// wantEqual waits until all members have the same log, and compares it byte for byte, frame by frame.
func (m *members) wantEqual() {
	m.t.Helper()
	leader := m.leader("")
	last := func(id string) uint64 {
		i, _ := m.groups[id].Journal().LastIndex()
		return i
	}
	end := func(id string) (all int64) {
		for p := range uint32(3) {
			_, e := m.groups[id].Journal().Bounds(p)
			all += e
		}
		return all
	}
	to := uint64(0)
	m.until("all to be equal", func() bool { // a change of leader in between adds an entry
		to = last(leader)
		for id := range m.groups {
			if last(id) != to || end(id) != end(leader) {
				return false
			}
		}
		return true
	})
	for id, g := range m.groups {
		first, _ := g.Journal().FirstIndex()
		lead, _ := m.groups[leader].Journal().FirstIndex()
		for i := max(first, lead); i <= to; i++ {
			want, err := m.groups[leader].Journal().Frame(i)
			must(m.t, err)
			got, err := g.Journal().Frame(i)
			must(m.t, err)
			if !bytes.Equal(got, want) {
				m.t.Fatalf("entry %d of %s differs from %s's", i, id, leader)
			}
		}
		for p := range uint32(3) {
			values(m.t, g.Journal(), p) // checks that offsets are dense
		}
	}
}

// The log is the journal: a leader with an uncommitted tail is cut off and comes back; all journals are byte-identical
// and offsets dense, before and after a new start.
func TestALeaderWithAnUncommittedTailRejoins(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{SegmentBytes: 8 << 10}, "a", "b", "c")
	old := m.leader("")
	m.append(old, 60, "before")
	m.net.isolate(old)
	var lost sync.WaitGroup
	outcomes := make(chan error, 40)
	for i := range 40 { // stored by the old leader, never committed
		lost.Go(func() {
			_, err := put(m.groups[old], uint32(i%3), fmt.Sprint("lost", i))
			outcomes <- err
		})
	}
	next := m.leader(old)
	m.append(next, 80, "after")
	lost.Wait()
	close(outcomes)
	for err := range outcomes {
		if !errors.Is(err, raftgroup.ErrUnknownOutcome) && !errors.Is(err, raftgroup.ErrNotLeader) {
			t.Fatalf("append without a majority: got %v", err)
		}
	}
	lastOld, _ := m.groups[old].Journal().LastIndex()
	if lastOld < 62 {
		t.Fatalf("the old leader's log ends at %d, the test wants an uncommitted tail", lastOld)
	}
	m.net.rejoin(old)
	m.wantEqual()
	m.append(m.leader(""), 30, "healed")
	m.wantEqual()
	for p := range uint32(3) {
		for _, v := range values(t, m.groups[old].Journal(), p) {
			if len(v) > 4 && v[:4] == "lost" {
				t.Fatalf("partition %d has %q, which was never committed", p, v)
			}
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		m.stop(id)
		r, err := storage.Verify(m.dirs[id])
		must(t, err)
		if len(r.Problems) > 0 {
			t.Errorf("member %s: %v", id, r.Problems)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		m.start(id, nil)
	}
	m.wantEqual()
}

// Followers check and never assign: an idempotent producer gets the same answer from the next leader.
func TestProducersSurviveAChangeOfLeader(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	old := m.leader("")
	m.append(old, 9, "x")
	stop := func() { m.stop(old) }
	sentBy := func(id string) *storage.Batch {
		b := &storage.Batch{Partition: 1, Data: idempotent(77, 5)}
		must(t, m.groups[id].AppendWait(context.Background(), []*storage.Batch{b}))
		return b
	}
	first := sentBy(old)
	stop()
	next := m.leader(old)
	var again *storage.Batch
	m.until("the new leader to serve", func() bool {
		b := &storage.Batch{Partition: 1, Data: idempotent(77, 5)}
		again = b
		return m.groups[next].AppendWait(context.Background(), []*storage.Batch{b}) == nil
	})
	if again.Err != nil || !again.Duplicate || again.Offset != first.Offset {
		t.Errorf("got offset %d, duplicate %v, %v; want the original's %d", again.Offset, again.Duplicate, again.Err, first.Offset)
	}
}

// A replica that comes when the front is gone gets the state at the front and the log behind it; it then counts like
// any other.
func TestANewReplicaJoinsAfterTheFrontWasTrimmed(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 8 << 10, Retention: storage.Retention{Bytes: 16 << 10}}
	m := startMembers(t, o, "a", "b")
	leader := m.leader("")
	m.append(leader, 400, "old")
	for _, g := range m.groups {
		if n, err := g.Retain(); n == 0 || err != nil {
			t.Fatalf("removed %d segments, %v; the test wants some", n, err)
		}
	}
	m.start("c", nil)
	must(t, m.groups[leader].AddVoter("c", "c", 10*time.Second))
	m.append(leader, 30, "new")
	m.wantEqual()
	start, end := m.groups["c"].Journal().Bounds(0)
	if wantStart, wantEnd := m.groups[leader].Journal().Bounds(0); end != wantEnd || start > end || start < wantStart-200 {
		t.Errorf("new replica has %d to %d, the leader %d to %d", start, end, wantStart, wantEnd)
	}
	m.stop("c")
	m.append(leader, 400, "more")
	for _, g := range m.groups {
		if _, err := g.Retain(); err != nil {
			t.Fatal(err)
		}
	}
	m.start("c", nil) // its log ends before the others' begin: a second snapshot over an old log
	m.wantEqual()
	m.stop("c")
	m.start("c", nil)
	m.wantEqual()
}

// A live ex-leader whose log ends beyond what the others still have is ended instead of being sent snapshots for ever,
// and is in order again when it is opened anew.
func TestAMemberWithALongerLogThanTheSnapshotIsReopened(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 8 << 10, Retention: storage.Retention{Bytes: 8 << 10}}
	m := startPatient(t, 2*time.Second, o, "a", "b", "c") // the old leader appends while it still leads
	old := m.leader("")
	m.append(old, 6, "x")
	m.net.isolate(old)
	// Each of these gets an entry of its own, as two do not fit into a proposal.
	large := string(bytes.Repeat([]byte("x"), 700<<10))
	var lost sync.WaitGroup
	for range 8 {
		lost.Add(1)
		b := &storage.Batch{Data: storagetest.Batch(large)}
		must(t, m.groups[old].Append(context.Background(), []*storage.Batch{b}, func(error) { lost.Done() }))
	}
	lost.Wait()
	had, err := m.groups[old].Journal().LastIndex()
	must(t, err)
	next := m.leader(old)
	m.append(next, 2, string(bytes.Repeat([]byte("y"), 9<<10))) // a segment each
	m.append(next, 1, "kept")
	for id, g := range m.groups {
		if id == old {
			continue
		}
		m.until(id+" to trim its front", func() bool {
			_, err := g.Retain()
			must(t, err)
			return g.Journal().Front().Index > 8
		})
		if front := g.Journal().Front().Index; front >= had {
			t.Fatalf("front of %s is at %d, the old leader's log ends at %d; the test wants it longer", id, front, had)
		}
	}
	m.net.rejoin(old)
	select {
	case <-m.groups[old].Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the member goes on")
	}
	if err := m.groups[old].Err(); !errors.Is(err, raftgroup.ErrReopen) {
		t.Fatalf("got %v, want ErrReopen", err)
	}
	m.stop(old)
	m.start(old, nil)
	m.wantEqual()
}
