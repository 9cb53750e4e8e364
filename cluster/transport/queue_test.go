package transport_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// askForVotes asks a member for votes in so many terms, one after the other, and returns where the outcomes come.
func askForVotes(g *transport.Group, terms int) (results chan error) {
	results = make(chan error, terms)
	for term := range uint64(terms) {
		go func() {
			results <- g.RequestVote("b", "b", &raft.RequestVoteRequest{Term: term + 1}, &raft.RequestVoteResponse{})
		}()
		synctest.Wait() // it has come, and waits there or was refused
	}
	return results
}

// Requests that raft does not take wait in the order in which they came, so many of them; the others are refused.
func TestRequestsThatRaftDoesNotTakeAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiting, refused = 49, 11 // 48, and one whose answer is waited for
		a, b := newPipes().pair(t, transport.Options{Silence: -1})
		ga, gb := openGroup(t, a), openGroup(t, b)
		results := askForVotes(ga, waiting+refused)
		for range refused {
			if err := <-results; err == nil {
				t.Error("a request was answered that raft has not seen")
			}
		}
		if got := b.Stats().Busy; got != refused {
			t.Errorf("%d requests were refused, want %d", got, refused)
		}
		for want := range uint64(waiting) {
			rpc := <-gb.Consumer()
			if got := rpc.Command.(*raft.RequestVoteRequest).Term; got != want+1 {
				t.Errorf("raft got the request of term %d, want that of %d", got, want+1)
			}
			rpc.Respond(&raft.RequestVoteResponse{Term: want + 1}, nil)
		}
		for range waiting {
			must(t, <-results)
		}
	})
}

// When a group ends, what waits for raft is answered: nobody waits for the time-out.
func TestAClosedGroupAnswersWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const all = 20 // more than raft has in front of it
		a, b := newPipes().pair(t, transport.Options{Silence: -1, Timeout: time.Hour})
		ga, gb := openGroup(t, a), openGroup(t, b)
		results := askForVotes(ga, all)
		began := time.Now()
		must(t, gb.Close())
		for range all {
			if err := <-results; err == nil || errors.Is(err, transport.ErrTimeout) {
				t.Errorf("a request to a group that was closed: got %v", err)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("that took %v", took)
		}
	})
}
