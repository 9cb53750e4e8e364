package raftgroup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// played is a leader that the test plays: it sends a member what the test says, out of a journal of its own.
type played struct {
	t       *testing.T
	journal *storage.Journal
	trans   *transport.Group
	term    uint64
}

// playedPeers are the members of a group of which a is played.
var playedPeers = raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}, {ID: "b", Address: "b"}, {ID: "c", Address: "c"}}}

// play lets a lead and returns the transport of the member b, which never stands for election.
func play(t *testing.T, commands bool) (p *played, member raft.Transport) {
	t.Helper()
	n := newNetwork(t, transport.Options{Silence: time.Minute, Timeout: 30 * time.Second})
	a, err := n.start("a").Group(testGroup)
	must(t, err)
	b, err := n.start("b").Group(testGroup)
	must(t, err)
	p = &played{t: t, trans: a, term: 1}
	p.lead(openJournal(t, commands))
	must(t, p.journal.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(playedPeers)}))
	return p, b
}

func openJournal(t *testing.T, commands bool) *storage.Journal {
	t.Helper()
	j, err := storage.Open("leader", storage.Options{FS: vfs.NewMem(), SegmentBytes: 8 << 10, Commands: commands})
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

// lead goes on with another journal.
func (p *played) lead(j *storage.Journal) {
	p.journal = j
	p.trans.Bind(transport.Journal(j), "a", func() []raft.Server { return playedPeers.Servers })
}

// append puts batches into the leader's journal, each as an entry.
func (p *played) append(n int, tag string) {
	p.t.Helper()
	for i := range n {
		b := &storage.Batch{Partition: uint32(i % 2), Data: storagetest.Batch(fmt.Sprint(tag, i, string(make([]byte, 200))))}
		must(p.t, b.Check())
		proposal := &storage.Proposal{Batches: []*storage.Batch{b}}
		data, err := p.journal.Propose(proposal)
		must(p.t, err)
		must(p.t, p.journal.StoreLog(&raft.Log{Index: p.last() + 1, Term: p.term, Type: raft.LogCommand, Data: data}))
		p.journal.Withdraw(proposal)
	}
	p.journal.Commit(p.last())
}

func (p *played) last() uint64 {
	last, err := p.journal.LastIndex()
	must(p.t, err)
	return last
}

// send sends the entries behind prev up to last, and what is committed.
func (p *played) send(prev, last, committed uint64) {
	p.t.Helper()
	req := &raft.AppendEntriesRequest{Term: p.term, PrevLogEntry: prev, LeaderCommitIndex: committed}
	if prev > 0 {
		var l raft.Log
		must(p.t, p.journal.GetLog(prev, &l))
		req.PrevLogTerm = l.Term
	}
	for i := prev + 1; i <= last; i++ {
		var l raft.Log
		must(p.t, p.journal.GetLog(i, &l))
		req.Entries = append(req.Entries, &l)
	}
	var resp raft.AppendEntriesResponse
	(&members{t: p.t}).until("an answer", func() bool {
		again := *req // the transport drops the entries of one that it could not send
		return p.trans.AppendEntries("b", "b", &again, &resp) == nil
	})
	if !resp.Success {
		p.t.Fatalf("entries %d to %d were refused by a member whose log ends with %d", prev+1, last, resp.LastLog)
	}
}

// install sends a snapshot, until the member is free to look at it.
func (p *played) install(index, term uint64, state []byte) {
	p.t.Helper()
	req := &raft.InstallSnapshotRequest{
		SnapshotVersion: raft.SnapshotVersionMax, Term: p.term, LastLogIndex: index, LastLogTerm: term,
		Configuration: raft.EncodeConfiguration(playedPeers), ConfigurationIndex: 1, Size: int64(len(state)),
	}
	(&members{t: p.t}).until("a snapshot to be taken", func() bool {
		var resp raft.InstallSnapshotResponse
		err := p.trans.InstallSnapshot("b", "b", req, &resp, bytes.NewReader(state))
		return err == nil && resp.Success
	})
}

// trim removes what a journal may.
func trim(t *testing.T, j *storage.Journal, keep int64) storage.Front {
	t.Helper()
	j.SetRetention(storage.Retention{Bytes: keep})
	if n, err := j.Retain(); err != nil || n == 0 {
		t.Fatalf("%d segments were removed: %v", n, err)
	}
	return j.Front()
}

// ends are where the two partitions end that are played with.
func ends(j *storage.Journal) (all [2]int64) {
	for part := range all {
		_, all[part] = j.Bounds(uint32(part))
	}
	return all
}

// A leader that thinks a member far behind, as its answers were lost, sends it the front of its log. The member has it and
// more, which it has acknowledged: that stays, what was shown stays shown, and the leader goes on from there. So it does if
// the member has removed more of its log than the leader.
func TestAMemberKeepsWhatItHasBehindAFrontThatIsSent(t *testing.T) {
	t.Parallel()
	p, b := play(t, false)
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), ID: "b", Transport: b, Timeout: time.Hour, Journal: storage.Options{SegmentBytes: 4 << 10}})
	p.append(99, "x")
	for prev := uint64(0); prev < 100; prev += 20 {
		p.send(prev, prev+20, 90)
	}
	reached := func(index uint64) func() bool { return func() bool { return g.Journal().Visible().Index >= index } }
	m := &members{t: t}
	m.until("what is committed to be shown", reached(90))
	shown := ends(g.Journal())
	want := [2][]string{values(t, g.Journal(), 0), values(t, g.Journal(), 1)}
	keeps := func() {
		t.Helper()
		if last, err := g.Journal().LastIndex(); err != nil || last < 100 {
			t.Fatalf("the log ends with entry %d, %v; 100 entries were acknowledged", last, err)
		}
		if got := ends(g.Journal()); slices.Compare(got[:], shown[:]) < 0 {
			t.Errorf("the partitions end at %v, %v was shown before", got, shown)
		}
		for part := range uint32(2) {
			all := values(t, g.Journal(), part)
			if k := min(len(all), 10); k == 0 || !slices.Contains(all, want[part][len(want[part])-1]) {
				t.Errorf("the last record that was shown of partition %d cannot be read any more", part)
			}
		}
		if err := g.Err(); err != nil {
			t.Fatalf("the member ended: %v", err)
		}
	}
	front := trim(t, p.journal, 20<<10)
	if front.Index < 10 || front.Index > 80 {
		t.Fatalf("the leader's log begins behind entry %d; the test wants it in the middle", front.Index)
	}
	p.install(front.Index, front.Term, front.State)
	keeps()
	p.send(front.Index, front.Index+20, 90) // what the leader thinks is needed
	keeps()
	own := trim(t, g.Journal(), 4<<10)
	if own.Index < front.Index+5 {
		t.Fatalf("the member's log begins behind entry %d; the test wants it well behind %d", own.Index, front.Index)
	}
	p.install(front.Index, front.Term, front.State)
	keeps()
	p.send(front.Index, front.Index+3, 90) // all of it is gone here
	p.append(20, "y")
	p.send(front.Index, own.Index+10, 90) // some of it
	p.send(100, p.last(), p.last())
	m.until("all to be committed", reached(p.last()))
	keeps()
	if got, want := ends(g.Journal()), ends(p.journal); got != want {
		t.Errorf("the partitions end at %v, want %v", got, want)
	}
}

// What a request commits is no more than it shows to be the same here: what else the log has may be of a leader that was
// not followed by a majority.
func TestNothingIsCommittedThatTheLeaderHasNotSent(t *testing.T) {
	t.Parallel()
	p, b := play(t, false)
	g := openGroup(t, raftgroup.Options{Dir: t.TempDir(), ID: "b", Transport: b, Timeout: time.Hour})
	p.append(29, "common")
	next := openJournal(t, false)
	f, err := p.journal.FramesAfter(0, 1<<20)
	must(t, err)
	must(t, next.StoreReceived(bytes.Join(f.Pieces, nil)))
	f.Release()
	p.append(20, "never committed")
	p.send(0, p.last(), 30)
	p.lead(next)
	p.term = 3
	p.append(40, "instead")
	p.send(10, 20, 60) // as it would after a snapshot: the member has more, and not the same
	p.send(20, 25, 60)
	p.send(25, 70, 60)
	p.send(70, 70, 70)
	(&members{t: t}).until("all to be committed", func() bool { return g.Journal().Visible().Index >= 70 })
	if err := g.Err(); err != nil {
		t.Fatalf("the member ended: %v", err)
	}
	for part := range uint32(2) {
		if diff := cmp.Diff(values(t, next, part), values(t, g.Journal(), part)); diff != "" {
			t.Errorf("partition %d: %s", part, diff)
		}
	}
}

// A snapshot of what a state machine is past changes neither it nor the log behind it.
func TestAStateMachineKeepsWhatItHasBehindASnapshotThatIsSent(t *testing.T) {
	t.Parallel()
	p, b := play(t, true)
	g, st := openFSM(t, raftgroup.Options{Dir: t.TempDir(), ID: "b", Transport: b, Timeout: time.Hour})
	early := map[string]int{}
	for i := uint64(2); i <= 40; i++ {
		command := fmt.Sprint("command", i)
		must(t, p.journal.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte(command)}))
		if i <= 20 {
			early[command] = 1
		}
	}
	p.send(0, 40, 35)
	m := &members{t: t}
	m.until("commands to be applied", func() bool { return st.of("command35") == 1 })
	state, err := json.Marshal(early)
	must(t, err)
	p.install(20, 1, state)
	if last, err := g.Journal().LastIndex(); err != nil || last != 40 {
		t.Fatalf("the log ends with entry %d, %v; 40 entries were acknowledged", last, err)
	}
	if st.of("command35") != 1 {
		t.Error("a command that was applied is so no more")
	}
	p.send(40, 40, 40)
	m.until("all to be applied", func() bool { return st.of("command40") == 1 })
	must(t, g.Snapshot())
	p.install(20, 1, state)
	for i := 2; i <= 40; i++ {
		if n := st.of(fmt.Sprint("command", i)); n != 1 {
			t.Errorf("command %d is applied %d times", i, n)
		}
	}
}
