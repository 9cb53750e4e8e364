package raftgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/cable"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// others are the members but for one.
func (m *members) others(id string) []string {
	var all []string
	for other := range m.groups {
		if other != id {
			all = append(all, other)
		}
	}
	slices.Sort(all)
	return all
}

// load appends from several goroutines to whoever leads until stopped, and keeps what was acknowledged.
type load struct {
	m       *members
	stop    chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex // guards acked
	acked map[uint32]map[string]int64
	count atomic.Int64
}

func (m *members) load(writers int) *load {
	l := &load{m: m, stop: make(chan struct{}), acked: map[uint32]map[string]int64{0: {}, 1: {}, 2: {}}}
	groups := slices.Collect(func(yield func(*raftgroup.Group) bool) {
		for _, g := range m.groups {
			if !yield(g) {
				return
			}
		}
	})
	for w := range writers {
		l.running.Go(func() { l.write(groups, w) })
	}
	return l
}

func (l *load) write(groups []*raftgroup.Group, w int) {
	p := uint32(w % 3)
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		value := fmt.Sprintf("w%d-%d", w, i)
		for _, g := range groups {
			if _, self := g.Leader(); !self {
				continue
			}
			if offset, err := put(g, p, value); err == nil {
				l.mu.Lock()
				l.acked[p][value] = offset
				l.mu.Unlock()
				l.count.Add(1)
			}
		}
	}
}

// finish stops the load and checks that every member has all that was acknowledged where it was said to be.
func (l *load) finish() {
	l.m.t.Helper()
	close(l.stop)
	l.running.Wait()
	l.m.wantEqual()
	for id, g := range l.m.groups {
		for p, acked := range l.acked {
			got := values(l.m.t, g.Journal(), p)
			for value, offset := range acked {
				if offset >= int64(len(got)) || got[offset] != value {
					l.m.t.Fatalf("%s has not %q at offset %d of partition %d", id, value, offset, p)
				}
			}
		}
	}
}

// wantMore waits until the load gets more acknowledgements.
func (l *load) wantMore(n int64) {
	l.m.t.Helper()
	from := l.count.Load()
	l.m.until(fmt.Sprint(n, " more appends"), func() bool { return l.count.Load() >= from+n })
}

// Connections end again and again, all at once or one by one: nothing that was acknowledged is lost or moved, and the
// members stay the same.
func TestAppendsSurviveCutConnections(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{SegmentBytes: 64 << 10}, "a", "b", "c")
	m.leader("")
	l := m.load(6)
	for i := range 8 {
		id := []string{"a", "b", "c"}[i%3]
		m.net.each(id, (*cable.Cable).Cut)
		l.wantMore(30)
	}
	l.finish()
}

// A network that swallows what goes one way leaves a leader that can be reached and reach a majority.
func TestAOneWayPartitionIsSurvived(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	old := m.leader("")
	l := m.load(3)
	l.wantMore(20)
	for _, other := range m.others(old) { // what others say does not reach the leader, what it says reaches them
		m.net.wire(other, old).Swallow(true, false)
		m.net.wire(old, other).Swallow(false, true)
	}
	m.leader(old)
	l.wantMore(20)
	m.net.rejoin(old)
	l.wantMore(20)
	l.finish()
}

// A follower behind a slow wire delays nobody, and has everything once the wire is fast again.
func TestASlowFollowerDoesNotWedge(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 10*time.Second, storage.Options{}, "a", "b", "c")
	leader := m.leader("")
	slow := m.others(leader)[0]
	large := bytes.Repeat([]byte("x"), 100<<10)
	last := func(id string) uint64 { i, _ := m.groups[id].Journal().LastIndex(); return i }
	const behind = 100 // entries, and so more bytes than are on their way to a member at a time
	for i, speed := 0, 2<<20; last(slow)+behind > last(leader); i++ {
		if i%50 == 0 { // a machine that is slow itself needs a slower wire
			m.net.wire(leader, slow).Slow(2*time.Millisecond, speed)
			speed /= 2
		}
		if i == 1000 {
			t.Fatalf("the slow follower has %d of %d entries; want it to lag and nobody to wait", last(slow), last(leader))
		}
		b := &storage.Batch{Partition: uint32(i % 3), Data: storagetest.Batch(string(large))}
		must(t, m.groups[leader].AppendWait(context.Background(), []*storage.Batch{b}))
	}
	m.net.wire(leader, slow).Slow(0, 0)
	m.wantEqual()
	if got := m.leader(""); got != leader {
		t.Errorf("%s leads, %s did", got, leader)
	}
}

// The largest entry there can be goes through, between others, to all.
func TestTheLargestBatchIsReplicated(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{}, "a", "b", "c")
	leader := m.leader("")
	large := string(bytes.Repeat([]byte("large"), (storage.MaxBatchBytes-200)/5))
	for i := range 3 {
		m.append(leader, 3, fmt.Sprint("small", i))
		m.append(leader, 1, large)
	}
	m.wantEqual()
}

// A follower that was away for long catches up by whole requests of many entries.
func TestARestartedFollowerCatchesUp(t *testing.T) {
	t.Parallel()
	m := startPatient(t, 3*time.Second, storage.Options{SegmentBytes: 4 << 20}, "a", "b", "c")
	leader := m.leader("")
	away := m.others(leader)[0]
	m.append(leader, 5, "before")
	m.stop(away)
	m.append(leader, 100, strings.Repeat("y", 300<<10))
	m.start(away, nil)
	m.wantEqual()
	split := uint64(0)
	for _, p := range m.net.places { // the leader may have changed
		split += p.trans.Stats().Split
	}
	if split == 0 {
		t.Error("no request was split")
	}
}

// manyGroups are groups that all have a member on each of three nodes.
type manyGroups struct {
	t      testing.TB
	net    *network
	groups map[string][]*raftgroup.Group // by node
}

func startMany(t testing.TB, n int) *manyGroups {
	m := &manyGroups{t: t, net: newNetwork(t, transport.Options{}), groups: map[string][]*raftgroup.Group{}}
	ids := []string{"a", "b", "c"}
	var peers []raft.Server
	for _, id := range ids {
		m.net.start(id)
		peers = append(peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	var opening sync.WaitGroup
	for _, id := range ids {
		m.groups[id] = make([]*raftgroup.Group, n)
		dir := t.TempDir()
		opening.Go(func() {
			for i := range n {
				tr, err := m.net.places[id].trans.Group(transport.GroupID{0: byte(i), 1: byte(i >> 8)})
				if err != nil {
					t.Error(err)
					return
				}
				g, err := raftgroup.Open(raftgroup.Options{
					Dir: fmt.Sprintf("%s/%d", dir, i), ID: id, Transport: tr, Peers: peers,
					Journal: storage.Options{SegmentBytes: 1 << 20, Mode: storage.Replicated},
				})
				if err != nil {
					t.Error(err)
					return
				}
				m.groups[id][i] = g
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, groups := range m.groups {
			for _, g := range groups {
				closing.Go(func() { _ = g.Close() })
			}
		}
		closing.Wait()
	})
	return m
}

// led is how many groups have a leader among the nodes, which the leader itself says.
func (m *manyGroups) led(nodes ...string) int {
	n := 0
	for i := range m.groups[nodes[0]] {
		for _, id := range nodes {
			if _, self := m.groups[id][i].Leader(); self {
				n++
				break
			}
		}
	}
	return n
}

// within waits until all groups are led and returns how long it took.
func (m *manyGroups) within(began time.Time, nodes ...string) time.Duration {
	m.t.Helper()
	want := len(m.groups[nodes[0]])
	for m.led(nodes...) < want {
		if time.Since(began) > time.Minute {
			m.t.Fatalf("%d of %d groups are led after a minute", m.led(nodes...), want)
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
	return time.Since(began)
}

// settled says whether all members of all groups follow the same leader.
func (m *manyGroups) settled() bool {
	for i, g := range m.groups["a"] {
		leader, _ := g.Leader()
		for _, groups := range m.groups {
			if id, _ := groups[i].Leader(); id == "" || id != leader {
				return false
			}
		}
	}
	return true
}

// A hundred groups on three nodes share their sessions; when a node's process dies somebody is told to stand in each that it
// led.
func TestAHundredGroupsAreLedAgainAtOnce(t *testing.T) {
	m := startMany(t, 100)
	t.Logf("led after %v", m.within(time.Now(), "a", "b", "c"))
	for began := time.Now(); !m.settled(); time.Sleep(5 * time.Millisecond) { // a poll with a deadline
		if time.Since(began) > 30*time.Second {
			t.Fatal("not all members follow their leaders")
		}
	}
	counts := map[string]int{}
	for _, id := range []string{"a", "b", "c"} {
		counts[id] = m.led(id)
	}
	dead := "a"
	for id, n := range counts {
		if n > counts[dead] {
			dead = id
		}
	}
	var rest []string
	for id := range counts {
		if id != dead {
			rest = append(rest, id)
		}
	}
	before := map[string]uint64{}
	for _, id := range rest {
		before[id] = m.net.places[id].trans.Stats().Stood
	}
	began := time.Now()
	m.net.stop(dead)
	again := m.within(began, rest...) // 0.2 s on a quiet machine; make bench-cluster measures it
	t.Logf("%d groups of the dead node were led again after %v", counts[dead], again)
	stood := uint64(0)
	for _, id := range rest {
		stood += m.net.places[id].trans.Stats().Stood - before[id]
	}
	if stood < uint64(counts[dead]) {
		t.Errorf("%d groups were told to stand, want at least %d", stood, counts[dead])
	}
}

// Idle groups fold their appends into heartbeats and heartbeats into few frames.
func TestIdleGroupsShareFrames(t *testing.T) {
	t.Parallel()
	m := startMany(t, 30)
	m.within(time.Now(), "a", "b", "c")
	sum := func() (s transport.Stats) {
		for _, id := range []string{"a", "b", "c"} {
			x := m.net.places[id].trans.Stats()
			s.Heartbeats += x.Heartbeats
			s.Folded += x.Folded
			s.FramesSent += x.FramesSent
		}
		return s
	}
	for began := time.Now(); sum().Folded == 0; time.Sleep(5 * time.Millisecond) { // a poll with a deadline
		if time.Since(began) > 10*time.Second {
			t.Fatal("nothing was folded")
		}
	}
	from, began := sum(), time.Now()
	for sum().Heartbeats < from.Heartbeats+600 {
		if time.Since(began) > 20*time.Second {
			t.Fatal("heartbeats do not come")
		}
		time.Sleep(5 * time.Millisecond)
	}
	to := sum()
	beats, folded, frames := to.Heartbeats-from.Heartbeats, to.Folded-from.Folded, to.FramesSent-from.FramesSent
	t.Logf("%d heartbeats, %d of them folded, in %d frames both ways, in %v", beats, folded, frames, time.Since(began))
	if folded < beats/20 || frames > beats*3/2 { // empty appends come twice in an election timeout, heartbeats ten times
		t.Errorf("%d of %d heartbeats are folded appends, in %d frames", folded, beats, frames)
	}
}

// Without a majority nothing is acknowledged, however long the leader believes that it leads.
func TestAnIsolatedLeaderStepsDown(t *testing.T) {
	t.Parallel()
	m := startMembers(t, storage.Options{}, "a", "b", "c")
	old := m.leader("")
	m.append(old, 3, "x")
	m.net.isolate(old)
	began := time.Now()
	_, err := put(m.groups[old], 0, "never")
	if !errors.Is(err, raftgroup.ErrUnknownOutcome) && !errors.Is(err, raftgroup.ErrNotLeader) {
		t.Fatalf("got %v", err)
	}
	// The lease is a second, and a busy machine late by a few; a lost pipeline must not lengthen it.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the leader gave up after %v", took)
	}
}
