package transport_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// electorate is a member b of a group whose raft says yes to everything, and one that asks it.
type electorate struct {
	asks, asked *transport.Group
	seen        atomic.Int64 // requests that came to b's raft
}

func newElectorate(t *testing.T, e transport.Elector, b raft.Server) *electorate {
	x := &electorate{}
	one, two := newPipes().pair(t, transport.Options{})
	x.asks = openGroup(t, one)
	var err error
	x.asked, err = two.Group(group)
	must(t, err)
	t.Cleanup(func() { _ = x.asked.Close() })
	x.asked.Elect(e)
	x.asked.Bind(nil, "b", func() []raft.Server { return []raft.Server{b, {ID: "a", Address: "a"}} })
	follow(t, x.asked, func(rpc raft.RPC, _ int) (any, error) {
		x.seen.Add(1)
		switch rpc.Command.(type) {
		case *raft.RequestVoteRequest:
			return &raft.RequestVoteResponse{Granted: true}, nil
		case *raft.RequestPreVoteRequest:
			return &raft.RequestPreVoteResponse{Granted: true}, nil
		}
		return &raft.TimeoutNowResponse{}, nil
	})
	return x
}

func voter(s raft.ServerSuffrage) raft.Server {
	return raft.Server{ID: "b", Address: "b", Suffrage: s}
}

// A member votes, and has itself voted for, only with a log that its elector finds good enough; else raft is not asked.
func TestAMemberVotesAsItMay(t *testing.T) {
	t.Parallel()
	const floor = 10
	x := newElectorate(t, transport.Elector{MayVote: func(index, _ uint64) bool { return index >= floor }}, voter(raft.Voter))
	for _, last := range []uint64{floor - 1, floor} {
		want := last >= floor
		before := x.seen.Load()
		var vote raft.RequestVoteResponse
		must(t, x.asks.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 3, LastLogIndex: last, LastLogTerm: 2}, &vote))
		var pre raft.RequestPreVoteResponse
		must(t, x.asks.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{Term: 3, LastLogIndex: last, LastLogTerm: 2}, &pre))
		if vote.Granted != want || pre.Granted != want || (x.seen.Load() > before) != want {
			t.Errorf("for a log that ends with entry %d: vote %v, pre-vote %v, want %v; raft was asked %d times", last, vote.Granted, pre.Granted, want, x.seen.Load()-before)
		}
	}
}

// Who may not vote for itself asks nobody else to.
func TestWhoMayNotVoteDoesNotAskForVotes(t *testing.T) {
	t.Parallel()
	x := newElectorate(t, transport.Elector{}, voter(raft.Voter))
	x.asks.Elect(transport.Elector{MayVote: func(uint64, uint64) bool { return false }})
	var vote raft.RequestVoteResponse
	must(t, x.asks.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 3, LastLogIndex: 9, LastLogTerm: 2}, &vote))
	var pre raft.RequestPreVoteResponse
	must(t, x.asks.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{Term: 3, LastLogIndex: 9, LastLogTerm: 2}, &pre))
	if vote.Granted || pre.Granted || x.seen.Load() > 0 {
		t.Errorf("vote %v, pre-vote %v; the other was asked %d times", vote.Granted, pre.Granted, x.seen.Load())
	}
}

// A leader that hands over to who has no vote, or may not vote for itself, is told so, and raft there hears nothing: it
// would only end the leader's term.
func TestOnlyWhoMayVoteIsToldToStand(t *testing.T) {
	t.Parallel()
	has := func() (transport.Standing, bool) { return transport.Standing{Member: "b", Index: 9, LastTerm: 2}, true }
	for name, c := range map[string]struct {
		e        transport.Elector
		suffrage raft.ServerSuffrage
		stands   bool
	}{
		"voter":          {transport.Elector{Standing: has}, raft.Voter, true},
		"without a vote": {transport.Elector{Standing: has}, raft.Nonvoter, false},
		"in doubt":       {transport.Elector{Standing: has, MayVote: func(index, _ uint64) bool { return index > 9 }}, raft.Voter, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newElectorate(t, c.e, voter(c.suffrage))
			err := x.asks.TimeoutNow("b", "b", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
			if (err == nil) != c.stands || (x.seen.Load() > 0) != c.stands {
				t.Errorf("got %v, raft was asked %d times; want it to stand: %v", err, x.seen.Load(), c.stands)
			}
			if err != nil && !strings.Contains(err.Error(), "no vote") {
				t.Errorf("got %q, which does not say why", err)
			}
			seen := x.seen.Load()
			x.asked.Stand()
			if c.stands {
				until(t, "the member to stand", func() bool { return x.seen.Load() > seen })
			} else if x.seen.Load() > seen {
				t.Error("it stands when its own node wants it to")
			}
		})
	}
}

func TestAMemberSaysWhatItHas(t *testing.T) {
	t.Parallel()
	want := transport.Standing{Member: "b.7", Leads: true, Doubt: true, Term: 5, Index: 1 << 40, LastTerm: 4}
	var knows atomic.Bool
	x := newElectorate(t, transport.Elector{Standing: func() (transport.Standing, bool) { return want, knows.Load() }}, voter(raft.Voter))
	if _, err := x.asks.AskStanding("b", "b"); err == nil {
		t.Error("it answers although it does not know")
	}
	knows.Store(true)
	first, err := x.asks.AskStanding("b", "b")
	must(t, err)
	got := first
	if got.Instance == 0 {
		t.Error("its instance has no number")
	}
	got.Instance = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("standing (-want +got):\n%s", diff)
	}
	must(t, x.asked.Close())
	until(t, "the group to be gone", func() bool {
		_, err := x.asks.AskStanding("b", "b")
		return err != nil
	})
}
