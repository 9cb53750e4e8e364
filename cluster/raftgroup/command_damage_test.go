package raftgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// machines are the members of a group of commands, on nodes of their own.
type machines struct {
	t      *testing.T
	net    *network
	peers  []raft.Server
	dirs   map[string]string
	groups map[string]*raftgroup.Machine
	states map[string]*counts
}

func newMachines(t *testing.T, ids ...string) *machines {
	m := &machines{t: t, net: newNetwork(t, transport.Options{}), dirs: map[string]string{}, groups: map[string]*raftgroup.Machine{}, states: map[string]*counts{}}
	for _, id := range ids {
		m.peers = append(m.peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
		m.dirs[id] = filepath.Join(t.TempDir(), "log")
	}
	return m
}

func (m *machines) start(ids ...string) {
	m.t.Helper()
	for _, id := range ids {
		tr, err := m.net.start(id).Group(transport.GroupID{15: 2})
		must(m.t, err)
		m.groups[id], m.states[id] = openFSM(m.t, raftgroup.Options{
			Dir: m.dirs[id], ID: id, Transport: tr, Peers: m.peers, Timeout: time.Second, Journal: storage.Options{SegmentBytes: 4 << 10},
		})
	}
}

func (m *machines) stop(ids ...string) {
	m.t.Helper()
	for _, id := range ids {
		m.net.stop(id)
		must(m.t, m.groups[id].Close())
		delete(m.groups, id)
		delete(m.states, id)
	}
}

func (m *machines) until(what string, reached func() bool) {
	m.t.Helper()
	(&members{t: m.t}).until(what, reached)
}

// apply has a command applied by whoever leads, and returns that.
func (m *machines) apply(command string) (leader string) {
	m.t.Helper()
	m.until(command, func() bool {
		for id, g := range m.groups {
			if _, self := g.Leader(); !self {
				continue
			}
			_, err := g.Apply(context.Background(), []byte(command))
			if err == nil {
				leader = id
				return true
			}
			if !errors.Is(err, raftgroup.ErrNotLeader) && !errors.Is(err, raftgroup.ErrUnknownOutcome) {
				m.t.Fatal(err)
			}
		}
		return false
	})
	return leader
}

// damage flips a bit of the first frame of a segment.
func (m *machines) damage(id string, segment int) {
	m.t.Helper()
	paths, err := filepath.Glob(filepath.Join(m.dirs[id], "*.seg"))
	must(m.t, err)
	slices.Sort(paths)
	if segment >= len(paths)-1 {
		m.t.Fatalf("%s has %d segments; the test wants more than %d", id, len(paths), segment+1)
	}
	b, err := os.ReadFile(paths[segment])
	must(m.t, err)
	b[66] ^= 1
	must(m.t, os.WriteFile(paths[segment], b, 0o644))
}

// A leader that meets damage in an old entry, which a member that lags needs, sends its state instead and goes on. What is
// damaged is given up, and counts no more.
func TestALeaderThatMeetsDamageSendsItsStateInstead(t *testing.T) {
	t.Parallel()
	m := newMachines(t, "a", "b", "c")
	m.start("a", "b", "c")
	m.apply("first")
	m.until("all to have it", func() bool { return m.states["c"].of("first") > 0 })
	m.stop("c")
	leader := ""
	for i := range 150 {
		leader = m.apply(fmt.Sprint("command ", i))
	}
	for _, id := range []string{"a", "b"} { // whoever leads when c is back
		m.damage(id, 1)
	}
	m.start("c")
	m.until("c to have everything", func() bool { return m.states["c"].of("command 149") > 0 && m.states["c"].of("command 0") > 0 })
	m.apply("last")
	for id, g := range m.groups {
		if err := g.Err(); err != nil {
			t.Errorf("%s ended: %v", id, err)
		}
	}
	m.until("the damage to be outlived", func() bool { return len(m.groups[leader].Journal().Damages()) == 0 })
}

// Damage that a round of checking finds counts no more once the round is over, and a start needs none of it.
func TestDamagedCommandsAreGivenUpForASnapshot(t *testing.T) {
	t.Parallel()
	m := newMachines(t, "a")
	m.start("a")
	for i := range 150 {
		m.apply(fmt.Sprint("command ", i))
	}
	m.damage("a", 1)
	if found, err := m.groups["a"].Check(func(int) error { return nil }); found != 1 || err != nil {
		t.Fatalf("found %d damaged segments, %v; want 1", found, err)
	}
	if all := m.groups["a"].Journal().Damages(); len(all) > 0 {
		t.Errorf("after the check %v is damaged", all[0])
	}
	m.apply("last")
	m.stop("a")
	m.start("a")
	for i := range 150 {
		if n := m.states["a"].of(fmt.Sprint("command ", i)); n != 1 {
			t.Fatalf("command %d took effect %d times", i, n)
		}
	}
}

// A member whose damaged log was given up votes for nobody, whoever answers it, until there is a leader whose log it has
// filled its own from; its term and vote it keeps.
func TestAMemberThatForgotItsLogVotesOnlyBehindALeader(t *testing.T) {
	t.Parallel()
	m := newMachines(t, "a", "b", "c")
	m.start("a", "b", "c")
	for i := range 20 {
		m.apply(fmt.Sprint("command ", i))
	}
	term := m.groups["a"].Term()
	m.stop("a", "b", "c")
	next := m.dirs["a"] + "-next"
	must(t, storage.Succeed(vfs.OS{}, m.dirs["a"], next))
	must(t, raftgroup.CopySnapshots(vfs.OS{}, m.dirs["a"], next))
	m.dirs["a"] = next
	m.peers = nil // they are begun
	m.start("a", "b")
	if got := m.groups["a"].Term(); got < term {
		t.Errorf("it begins in term %d, and knew %d", got, term)
	}
	for tick, end := time.Tick(20*time.Millisecond), time.Now().Add(3*time.Second); time.Now().Before(end); <-tick { // an election takes two at most
		for _, id := range []string{"a", "b"} {
			if leader, _ := m.groups[id].Leader(); leader != "" {
				t.Fatalf("%s says that %s leads, which needs the vote of who forgot", id, leader)
			}
		}
	}
	m.start("c")
	m.apply("after")
	m.until("the doubt to end", func() bool { return !m.groups["a"].Journal().Doubt() })
	m.until("everything to be there again", func() bool { return m.states["a"].of("command 0") == 1 && m.states["a"].of("after") == 1 })
	m.stop("c")
	m.apply("by its vote")
}
