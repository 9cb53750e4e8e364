package raftgroup_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// powered are the members of a group in the mode replicated, on machines that can lose their power. Nothing is flushed
// by itself, so what a member loses is all that came since its last Flush.
type powered struct {
	*members
	disks map[string]*vfs.Mem
	boots map[string]int
	off   map[string]bool
}

func startPowered(t *testing.T, ids ...string) *powered {
	p := &powered{
		members: startMembers(t, storage.Options{}),
		disks:   map[string]*vfs.Mem{}, boots: map[string]int{}, off: map[string]bool{},
	}
	for _, id := range ids {
		p.peers = append(p.peers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
		p.disks[id] = vfs.NewMem()
	}
	for _, id := range ids {
		p.on(id)
	}
	return p
}

func (p *powered) on(id string) {
	p.t.Helper()
	p.opts = storage.Options{
		SegmentBytes: 64 << 10, Mode: storage.Replicated, FlushEvery: time.Hour,
		FS: p.disks[id], Boot: fmt.Sprint(id, p.boots[id]),
	}
	p.dirs[id] = "journal"
	p.start(id, p.peers)
}

// cut takes the power of machines, all at the same moment.
func (p *powered) cut(ids ...string) {
	p.t.Helper()
	left := map[string]*vfs.Mem{}
	for _, id := range ids {
		left[id] = p.disks[id].Crash(nil)
		p.boots[id]++
	}
	p.end(left)
}

// kill ends processes, all at the same moment; what they wrote stays in their systems' caches.
func (p *powered) kill(ids ...string) {
	p.t.Helper()
	left := map[string]*vfs.Mem{}
	for _, id := range ids {
		left[id] = p.disks[id].Crash(p.disks[id].Doubts())
	}
	p.end(left)
}

func (p *powered) end(left map[string]*vfs.Mem) {
	p.t.Helper()
	for id, disk := range left {
		p.stop(id) // in order, but on a disk that nobody will see again
		p.disks[id] = disk
	}
}

func (p *powered) doubtful() (ids []string) {
	for id, g := range p.groups {
		if g.Journal().Doubt() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (p *powered) wantDoubt(when string, ids ...string) {
	p.t.Helper()
	if got := p.doubtful(); !slices.Equal(got, ids) {
		p.t.Fatalf("%s: %v are in doubt, want %v", when, got, ids)
	}
}

// wantNoLeader gives those that are there time for several elections.
func (p *powered) wantNoLeader() {
	p.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * p.timeout); time.Now().Before(end); <-tick.C {
		for id, g := range p.groups {
			if _, self := g.Leader(); self {
				p.t.Fatalf("%s leads; in doubt are %v", id, p.doubtful())
			}
		}
	}
}

// wantValues waits until a member has these records of partition 0, in this order. It may have others, whose writer was
// not told what became of them.
func (p *powered) wantValues(id string, want []string) {
	p.t.Helper()
	p.until(fmt.Sprint("the records ", want, " of ", id), func() bool {
		left := want
		for _, v := range values(p.t, p.groups[id].Journal(), 0) {
			if len(left) > 0 && v == left[0] {
				left = left[1:]
			}
		}
		return len(left) == 0
	})
}

// write has records of partition 0 acknowledged, one after the other, by whoever leads.
func (p *powered) write(tag string, n int) (all []string) {
	p.t.Helper()
	lead := p.leader("")
	for i := range n {
		all = append(all, fmt.Sprint(tag, i))
		p.until("an append", func() bool {
			_, err := put(p.groups[lead], 0, all[i])
			if errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrUnknownOutcome) {
				lead = p.leader("")
				return false
			}
			must(p.t, err)
			return true
		})
	}
	return all
}

// The case that loses what was acknowledged if it is not for doubt: of three, one is cut off; what the other two
// acknowledge meanwhile is lost by one of them with its power, and the other dies. The two that are there then are a
// majority that never had it.
func TestWhoLostItsPowerDoesNotVoteForWhoNeverHadTheRecords(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a", "b", "c")
	lead := p.leader("")
	behind, victim := p.others(lead)[0], p.others(lead)[1]
	before := p.write("before", 3)
	for _, id := range []string{lead, behind, victim} {
		p.wantValues(id, before)
	}
	p.net.isolate(behind)
	acked := append(before, p.write("acked", 5)...)
	p.kill(lead)
	p.cut(victim)
	p.on(victim)
	p.net.rejoin(behind)
	p.wantDoubt("after the power cut", victim)
	p.wantNoLeader()

	p.kill(victim) // doubt outlives its process
	p.on(victim)
	p.wantDoubt("after the process was killed too", victim)
	p.wantNoLeader()

	p.on(lead)
	p.leader("")
	for id := range p.groups {
		p.wantValues(id, acked)
	}
	p.until("the end of doubt", func() bool { return len(p.doubtful()) == 0 })
}

// The leader that the others have brings back who lost its power, without another election; then that one votes again.
func TestDoubtEndsUnderALivingLeader(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a", "b", "c")
	lead := p.leader("")
	acked := p.write("w", 5)
	victim := p.others(lead)[0]
	p.wantValues(victim, acked)
	p.cut(victim)
	p.net.isolate(victim) // nothing can end its doubt yet
	p.on(victim)
	p.wantDoubt("after the power cut", victim)
	acked = append(acked, p.write("x", 5)...)
	p.net.rejoin(victim)
	p.until("the end of doubt", func() bool { return len(p.doubtful()) == 0 })
	p.wantValues(victim, acked)
	p.kill(p.leader("")) // the victim's vote, or its candidacy, is needed now
	p.leader("")
	acked = append(acked, p.write("y", 2)...)
	p.wantValues(victim, acked)
}

// When all machines lose their power nobody leads until all are back, and then the one that has most: nothing is lost that
// any disk has.
func TestAllMachinesLoseTheirPowerAtOnce(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a", "b", "c")
	lead := p.leader("")
	kept := p.write("kept", 4)
	best, first, second := p.others(lead)[0], lead, p.others(lead)[1]
	p.wantValues(best, kept)
	must(t, p.groups[best].Journal().Flush())
	p.write("lost", 3)
	p.cut("a", "b", "c")
	p.on(first)
	p.on(second)
	p.wantDoubt("after the power cut", sorted(first, second)...)
	p.wantNoLeader()
	p.on(best)
	p.until("the end of doubt", func() bool { return len(p.doubtful()) == 0 })
	kept = append(kept, p.write("after", 2)...)
	for id := range p.groups {
		p.wantValues(id, kept)
	}
}

// Two of three lose their power; the third was behind and is in no doubt. Nobody leads until both are back, and then
// what they have counts, not what the third has.
func TestAMajorityLosesItsPower(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a", "b", "c")
	lead := p.leader("")
	behind, victim := p.others(lead)[0], p.others(lead)[1]
	p.net.isolate(behind)
	acked := p.write("w", 5)
	p.wantValues(victim, acked)
	must(t, p.groups[victim].Journal().Flush())
	p.cut(lead, victim)
	p.net.rejoin(behind)
	p.on(lead)
	p.wantNoLeader()
	p.on(victim)
	p.leader("")
	for id := range p.groups {
		p.wantValues(id, acked)
	}
	p.until("the end of doubt", func() bool { return len(p.doubtful()) == 0 })
}

func sorted(ids ...string) []string {
	slices.Sort(ids)
	return ids
}

// A killed process loses nothing: two of three are enough at once.
func TestKilledProcessesAreNotInDoubt(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a", "b", "c")
	acked := p.write("w", 5)
	lead := p.leader("")
	other := p.others(lead)[0]
	p.wantValues(other, acked)
	p.kill("a", "b", "c")
	p.on(lead)
	p.on(other)
	p.wantDoubt("after the processes were killed")
	p.leader("")
	p.wantValues(lead, acked)
	p.wantValues(other, acked)
}

// A member that has no others has nobody to ask, and the best copy there is.
func TestTheOnlyMemberBelievesItself(t *testing.T) {
	t.Parallel()
	p := startPowered(t, "a")
	p.leader("")
	acked := p.write("w", 3)
	must(t, p.groups["a"].Journal().Flush())
	p.write("lost", 2)
	p.cut("a")
	p.on("a")
	p.leader("")
	p.wantValues("a", acked)
	p.until("the end of doubt", func() bool { return len(p.doubtful()) == 0 })
}
