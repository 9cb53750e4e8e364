package transport_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// Entries arrive as they are in the leader's journal; a large request goes as several that are each complete, in order.
func TestLargeAppendsAreSplitAndNeverCutShort(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, f := openGroup(t, a), follow(t, openGroup(t, b), nil)
	j, logs := source(t, 10, 400<<10, 400<<10, 400<<10, 7<<20, 20, 900<<10, 900<<10, 30)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	var resp raft.AppendEntriesResponse
	must(t, ga.AppendEntries("b", "b", appendOf(logs, 0, 5), &resp))
	if !resp.Success || resp.LastLog != 9 || resp.Term != 1 {
		t.Errorf("got %+v", resp)
	}
	got, _ := f.got()
	if len(got) < 5 {
		t.Errorf("got %d requests, want at least 5", len(got))
	}
	next := uint64(1)
	for _, r := range got {
		bytesOf := 0
		wantTerm := uint64(1)
		if next == 1 {
			wantTerm = 0
		}
		if r.PrevLogEntry != next-1 || r.PrevLogTerm != wantTerm || r.Term != 1 || r.LeaderCommitIndex != min(5, r.PrevLogEntry+uint64(len(r.Entries))) || string(r.Addr) != "a" {
			t.Errorf("before entry %d: got %+v", next, r)
		}
		for _, l := range r.Entries {
			want, err := j.Frame(next)
			must(t, err)
			if l.Index != next || l.Term != 1 || l.Type != raft.LogCommand || !bytes.Equal(l.Extensions, want) {
				t.Fatalf("entry %d arrived as %d of term %d, or with another frame", next, l.Index, l.Term)
			}
			bytesOf += len(l.Extensions)
			next++
		}
		if len(r.Entries) > 1 && bytesOf > 1<<20 {
			t.Errorf("a request has %d bytes in %d entries", bytesOf, len(r.Entries))
		}
	}
	if next != 10 {
		t.Errorf("the last entry that arrived is %d", next-1)
	}
	if s := a.Stats(); s.Split != 1 || s.HeldBytes != 0 || b.Stats().HeldBytes != 0 {
		t.Errorf("got %+v", s)
	}
}

// The answer to a request of which a part is refused is that refusal.
func TestARefusedPartFailsTheWhole(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga := openGroup(t, a)
	follow(t, openGroup(t, b), func(rpc raft.RPC, n int) (any, error) {
		if n == 1 {
			return &raft.AppendEntriesResponse{Term: 3, LastLog: 2, NoRetryBackoff: true}, nil
		}
		return yes(rpc)
	})
	j, logs := source(t, 900<<10, 900<<10, 900<<10)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	var resp raft.AppendEntriesResponse
	if err := ga.AppendEntries("b", "b", appendOf(logs, 0, 0), &resp); err != nil && !resp.Success {
		return // it had not sent all yet
	}
	if resp.Success || resp.Term != 3 || !resp.NoRetryBackoff {
		t.Errorf("got %+v", resp)
	}
}

// An entry whose frame is not in the journal is not sent: raft's GetLog makes the one before the front up.
func TestThePhantomEntryIsNotSent(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, f := openGroup(t, a), follow(t, openGroup(t, b), nil)
	j, logs := source(t, 10, 10, 10)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	phantom := []*raft.Log{{Index: 4, Term: 1, Type: raft.LogNoop}}
	for _, entries := range [][]*raft.Log{phantom, append(logs[2:3:3], phantom...)} {
		req := &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: entries[0].Index - 1, PrevLogTerm: 1, Entries: entries}
		var resp raft.AppendEntriesResponse
		if err := ga.AppendEntries("b", "b", req, &resp); !errors.Is(err, raft.ErrLogNotFound) || resp.Success {
			t.Errorf("got %v, %+v", err, resp)
		}
	}
	got, _ := f.got()
	for _, r := range got {
		for _, l := range r.Entries {
			if l.Index > 3 {
				t.Errorf("entry %d was sent", l.Index)
			}
		}
	}
}

// What the follower acknowledged last goes as a heartbeat that it answers, until it is opened anew.
func TestIdleAppendsGoAsHeartbeats(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, gb := openGroup(t, a), openGroup(t, b)
	f := follow(t, gb, nil)
	j, logs := source(t, 10, 10)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	send := func(req *raft.AppendEntriesRequest) error {
		var resp raft.AppendEntriesResponse
		err := ga.AppendEntries("b", "b", req, &resp)
		if (err == nil) != resp.Success {
			t.Errorf("got %v, %+v", err, resp)
		}
		return err
	}
	want := func(when string, appends, beats int) {
		t.Helper()
		if got, n := f.got(); len(got) != appends || n != beats {
			t.Errorf("%s: got %d appends and %d heartbeats, want %d and %d", when, len(got), n, appends, beats)
		}
	}
	must(t, send(appendOf(logs, 0, 0)))
	want("with entries", 1, 0)
	must(t, send(appendOf(logs, 2, 0)))
	want("when all is acknowledged", 1, 1)
	must(t, send(appendOf(logs, 2, 2)))
	want("when the commit index moved", 2, 1)
	must(t, send(appendOf(logs, 2, 2)))
	want("when that is acknowledged", 2, 2)
	if got := a.Stats().Folded; got != 2 {
		t.Errorf("%d appends were folded, want 2", got)
	}
	must(t, gb.Close())
	f = follow(t, openGroup(t, b), nil)
	if err := send(appendOf(logs, 2, 2)); err == nil {
		t.Error("an instance that does not know the commit index took a heartbeat for it")
	}
	want("to a new instance", 0, 0)
	must(t, send(appendOf(logs, 2, 2)))
	want("to a new instance, again", 1, 0)
}

// A peer that does not answer holds nobody for longer than the time-out, fills no channel, and is not shown to raft as
// one that answered.
func TestAPipelineThatGetsNoAnswersEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		a, b := newPipes().pair(t, transport.Options{Timeout: timeout})
		ga := openGroup(t, a)
		openGroup(t, b) // nobody takes what it receives
		j, logs := source(t, 100)
		ga.Bind(j, "a", membersOf("a", "b", "c"))
		p, err := ga.AppendEntriesPipeline("b", "b")
		must(t, err)
		defer p.Close()
		began := time.Now()
		var futures []raft.AppendFuture
		for {
			f, err := p.AppendEntries(appendOf(logs, 0, 0), &raft.AppendEntriesResponse{})
			if err != nil {
				break
			}
			futures = append(futures, f)
			if len(futures) > 1000 {
				t.Fatal("the pipeline has no bound")
			}
		}
		if took := time.Since(began); took > 3*timeout || len(futures) < 2 {
			t.Errorf("the pipeline took %d requests and ended after %v", len(futures), took)
		}
		for _, f := range futures {
			if err := f.Error(); err == nil || f.Response().Success {
				t.Errorf("got %v, %+v", err, f.Response())
			}
		}
		select {
		case <-p.Consumer():
			t.Error("raft was shown a request without an answer")
		default:
		}
	})
}

// A pipeline hands over its answers in order, and waits for room instead of filling a channel.
func TestAPipelineKeepsItsOrder(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga := openGroup(t, a)
	follow(t, openGroup(t, b), nil)
	sizes := make([]int, 300)
	for i := range sizes {
		sizes[i] = 1000 * (i%7 + 1)
	}
	j, logs := source(t, sizes...)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	p, err := ga.AppendEntriesPipeline("b", "b")
	must(t, err)
	defer p.Close()
	sent := make(chan error, 1)
	go func() {
		for i := range logs {
			if _, err := p.AppendEntries(appendOf(logs[:i+1], i, 0), &raft.AppendEntriesResponse{}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range logs {
		f := <-p.Consumer()
		if f.Request().PrevLogEntry != uint64(i) || !f.Response().Success || f.Error() != nil {
			t.Fatalf("answer %d is to the request behind entry %d: %+v, %v", i, f.Request().PrevLogEntry, f.Response(), f.Error())
		}
	}
	must(t, <-sent)
}

// What a group receives and does not take is bounded, and what is beyond is answered at once.
func TestAGroupThatTakesNothingIsBusy(t *testing.T) {
	t.Parallel()
	n := newPipes()
	a, b := n.pair(t, transport.Options{Timeout: 30 * time.Second, ReceiveBytes: 3 << 20})
	ga := openGroup(t, a)
	openGroup(t, b)
	j, logs := source(t, 900<<10, 900<<10, 900<<10, 900<<10, 900<<10)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	var resp raft.AppendEntriesResponse
	if err := ga.AppendEntries("b", "b", appendOf(logs, 0, 0), &resp); err == nil || !strings.Contains(err.Error(), "no room for the request") {
		t.Errorf("got %v; want to hear that there is no room", err)
	}
	if s := b.Stats(); s.Busy == 0 || s.HeldBytes > 3<<20 || s.HeldBytes == 0 {
		t.Errorf("got %+v", s)
	}
}

// Votes and the order to stand arrive as they were sent.
func TestVotesTravel(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, gb := openGroup(t, a), openGroup(t, b)
	seen := make(chan any, 4)
	follow(t, gb, func(rpc raft.RPC, _ int) (any, error) {
		seen <- rpc.Command
		if r, ok := rpc.Command.(*raft.RequestVoteRequest); ok && r.Term == 99 {
			return nil, errors.New("the disk is gone")
		}
		return yes(rpc)
	})
	var vote raft.RequestVoteResponse
	must(t, ga.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 5, LastLogIndex: 7, LastLogTerm: 4, LeadershipTransfer: true}, &vote))
	got := (<-seen).(*raft.RequestVoteRequest)
	if !vote.Granted || vote.Term != 5 || got.LastLogIndex != 7 || got.LastLogTerm != 4 || !got.LeadershipTransfer || string(got.ID) != "a" || got.ProtocolVersion != raft.ProtocolVersionMax {
		t.Errorf("got %+v for %+v", vote, got)
	}
	var pre raft.RequestPreVoteResponse
	must(t, ga.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{Term: 6, LastLogIndex: 8, LastLogTerm: 5}, &pre))
	if got := (<-seen).(*raft.RequestPreVoteRequest); !pre.Granted || pre.Term != 6 || got.LastLogIndex != 8 || got.LastLogTerm != 5 {
		t.Errorf("got %+v for %+v", pre, got)
	}
	must(t, ga.TimeoutNow("b", "b", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{}))
	if _, ok := (<-seen).(*raft.TimeoutNowRequest); !ok {
		t.Error("the order to stand did not arrive")
	}
	if err := ga.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 99}, &vote); err == nil || err.Error() != "peer refuses the request: the disk is gone" {
		t.Errorf("got %v", err)
	}
	must(t, gb.Close())
	if err := ga.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 6}, &vote); err == nil {
		t.Error("a group that is closed voted")
	}
	if err := ga.RequestVote("c", "c", &raft.RequestVoteRequest{Term: 6}, &vote); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("a node nobody knows: got %v", err)
	}
}
