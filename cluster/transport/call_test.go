package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// echo answers a call with what it was asked, and refuses the empty one.
func echo(_ context.Context, from string, kind uint8, body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, errors.New("nothing was asked")
	}
	return append([]byte(fmt.Sprint(from, kind, " ")), body...), nil
}

func TestACallIsAnsweredByThePeersHandler(t *testing.T) {
	t.Parallel()
	a, _ := newPipes().pair(t, transport.Options{Handle: echo})
	for _, size := range []int{1, 20 << 10, 2 << 20} { // on either connection, and the largest
		body := bytes.Repeat([]byte("x"), size)
		got, err := a.Call(t.Context(), "b", 7, body)
		if size == 2<<20 { // the answer is larger than what was asked, and so too large
			var refused *transport.CallError
			if !errors.As(err, &refused) {
				t.Errorf("got %v, want the handler's refusal", err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, append([]byte("a7 "), body...)) {
			t.Errorf("%d bytes: got %d bytes, %v", size, len(got), err)
		}
	}
	var refused *transport.CallError
	if _, err := a.Call(t.Context(), "b", 7, nil); !errors.As(err, &refused) || refused.Text != "nothing was asked" || refused.Node != "b" {
		t.Errorf("got %v, want the handler's error", err)
	}
	if _, err := a.Call(t.Context(), "nobody", 7, nil); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

// The caller's end of waiting is the handler's too, and so is the end of its connection.
func TestACallEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	entered, left := make(chan struct{}, 2), make(chan error, 2)
	a, b := newPipes().pair(t, transport.Options{Handle: func(ctx context.Context, _ string, _ uint8, _ []byte) ([]byte, error) {
		entered <- struct{}{}
		<-ctx.Done()
		left <- ctx.Err()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, "b", 1, []byte("x")); err == nil {
		t.Error("a call that was never answered succeeded")
	}
	<-entered
	if err := <-left; err == nil {
		t.Error("the handler's context did not end")
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.Call(t.Context(), "b", 1, []byte("x"))
		done <- err
	}()
	<-entered
	must(t, b.Close())
	if err := <-done; !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
	<-left
}

// A peer that asks too much at once is told so, and what it asked before goes on.
func TestCallsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	var running, most atomic.Int64
	a, _ := newPipes().pair(t, transport.Options{Timeout: 20 * time.Second, Silence: -1, Handle: func(context.Context, string, uint8, []byte) ([]byte, error) {
		for n := running.Add(1); ; {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		<-open
		running.Add(-1)
		return []byte("ok"), nil
	}})
	const calls = 200
	results := make(chan error, calls)
	for range calls {
		go func() {
			_, err := a.Call(t.Context(), "b", 1, []byte("x"))
			results <- err
		}()
	}
	busy := 0
	for range calls - 64 {
		if err := <-results; !errors.Is(err, transport.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy while the bound is reached", err)
		}
		busy++
	}
	close(open)
	for range calls - busy {
		must(t, <-results)
	}
	if got := most.Load(); got > 64 {
		t.Errorf("%d calls were answered at once, want at most 64", got)
	}
}

func TestAStrangerIsAnswered(t *testing.T) {
	t.Parallel()
	n := newPipes()
	n.node(t, "a", transport.Options{HandleStranger: func(_ context.Context, body []byte, _ *tls.ConnectionState) ([]byte, error) {
		if string(body) == "no" {
			return nil, errors.New("not you")
		}
		return append([]byte("welcome "), body...), nil
	}})
	n.node(t, "b", transport.Options{})
	o := transport.Options{Dial: n.dial}
	if got, err := transport.Ask(t.Context(), o, "a", []byte("me")); err != nil || string(got) != "welcome me" {
		t.Errorf("got %q, %v", got, err)
	}
	var refused *transport.RefusedError
	if _, err := transport.Ask(t.Context(), o, "a", []byte("no")); !errors.As(err, &refused) || refused.Reason != "not you" {
		t.Errorf("got %v, want the refusal", err)
	}
	if _, err := transport.Ask(t.Context(), o, "b", []byte("me")); !errors.As(err, &refused) {
		t.Errorf("got %v, want a refusal by who takes nobody in", err)
	}
	if _, err := transport.Ask(t.Context(), o, "a", make([]byte, 65<<10)); err == nil {
		t.Error("a question that is too large was asked")
	}
}

// Two processes that run on copies of one directory have the same id: the second is turned away while the first lives,
// and let in when it is gone.
func TestASecondProcessOfANodeIsTurnedAway(t *testing.T) {
	t.Parallel()
	n := newPipes()
	a, b := n.pair(t, transport.Options{Handle: echo})
	n.listen("copy")
	twin, err := transport.Open(transport.Options{Cluster: "test", Node: "b", Listener: n.listen("elsewhere"), Dial: n.dial, Handle: echo})
	must(t, err)
	t.Cleanup(func() { _ = twin.Close() })
	twin.SetPeer("a", "a")
	var refused *transport.RefusedError
	until(t, "the second to be refused", func() bool { return errors.As(twin.Stats().Peers["a"].Err, &refused) })
	if !b.Stats().Peers["a"].Up || !a.Stats().Peers["b"].Up {
		t.Error("the first was cut off")
	}
	must(t, b.Close())
	until(t, "the second to be let in", func() bool { return twin.Stats().Peers["a"].Up })
}

// A member that is not in its own configuration has no log worth a vote, whatever others believe.
func TestAMemberThatIsNotInTheConfigurationDoesNotVote(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga := openGroup(t, a)
	gb, err := b.Group(group)
	must(t, err)
	t.Cleanup(func() { _ = gb.Close() })
	var members atomic.Pointer[[]raft.Server]
	members.Store(&[]raft.Server{{ID: "b", Address: "b"}, {ID: "a.3", Address: "a"}}) // as another one that was on this node
	gb.Bind(nil, "b.9", func() []raft.Server { return *members.Load() })
	asked := make(chan string, 1)
	go func() {
		for rpc := range gb.Consumer() {
			asked <- string(rpc.Command.(*raft.RequestVoteRequest).ID)
			rpc.Respond(&raft.RequestVoteResponse{Term: 3, Granted: true}, nil)
		}
	}()
	var resp raft.RequestVoteResponse
	must(t, ga.RequestVote("b.9", "b", &raft.RequestVoteRequest{Term: 3}, &resp))
	if resp.Granted || len(asked) > 0 {
		t.Errorf("got %+v; raft was asked: %v", resp, len(asked) > 0)
	}
	members.Store(&[]raft.Server{{ID: "b.9", Address: "b"}, {ID: "a.3", Address: "a"}})
	must(t, ga.RequestVote("b.9", "b", &raft.RequestVoteRequest{Term: 3}, &resp))
	if got := <-asked; !resp.Granted || got != "a.3" {
		t.Errorf("got %+v, asked by %q; want a vote for a.3", resp, got)
	}
}

// A node's copy answers nothing that is meant for another copy which was, or is to be, in its place: neither votes nor
// acknowledgements of one count for the other.
func TestACopyDoesNotAnswerForAnother(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, gb := openGroup(t, a), openGroup(t, b)
	var seen atomic.Int64
	follow(t, gb, func(rpc raft.RPC, _ int) (any, error) {
		seen.Add(1)
		return yes(rpc)
	})
	heartbeat, entries := &raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 4, PrevLogTerm: 1}
	for id, want := range map[raft.ServerID]bool{"b": true, "b.7": false} {
		before := seen.Load()
		for what, err := range map[string]error{
			"vote":        ga.RequestVote(id, "b", &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{}),
			"pre-vote":    ga.RequestPreVote(id, "b", &raft.RequestPreVoteRequest{Term: 1}, &raft.RequestPreVoteResponse{}),
			"heartbeat":   ga.AppendEntries(id, "b", heartbeat, &raft.AppendEntriesResponse{}),
			"append":      ga.AppendEntries(id, "b", entries, &raft.AppendEntriesResponse{}),
			"snapshot":    ga.InstallSnapshot(id, "b", &raft.InstallSnapshotRequest{Term: 1, Configuration: raft.EncodeConfiguration(raft.Configuration{})}, &raft.InstallSnapshotResponse{}, strings.NewReader("")),
			"timeout now": ga.TimeoutNow(id, "b", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{}),
		} {
			if (err == nil) != want {
				t.Errorf("%s to %s: %v, want an answer: %v", what, id, err, want)
			}
		}
		if !want && seen.Load() > before {
			t.Errorf("raft of b saw %d requests for %s", seen.Load()-before, id)
		}
		if _, ok := ga.Acked(id); ok != want {
			t.Errorf("%s has acknowledged: %v, want %v", id, ok, want)
		}
	}
}
