package transport_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// An answer that comes after its heartbeat was given up is not taken for that to the next.
func TestALateAnswerIsNotTheNextHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 2 * time.Second
		a, b := newPipes().pair(t, transport.Options{Silence: -1, Timeout: timeout})
		ga, gb := openGroup(t, a), openGroup(t, b)
		beat := func(term uint64) (resp raft.AppendEntriesResponse, err error) {
			err = ga.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: term}, &resp)
			return resp, err
		}
		if resp, err := beat(1); !errors.Is(err, transport.ErrTimeout) || resp.Success { // nobody takes it
			t.Fatalf("got %+v, %v", resp, err)
		}
		second := make(chan error, 1)
		go func() {
			resp, err := beat(2)
			if err == nil && (resp.Term != 2 || !resp.Success) {
				err = errors.New("it is that of another heartbeat")
			}
			second <- err
		}()
		time.Sleep(timeout / 2) // it waits for the answer
		for range 2 {
			rpc := <-gb.Consumer()
			rpc.Respond(&raft.AppendEntriesResponse{Term: rpc.Command.(*raft.AppendEntriesRequest).Term, Success: true}, nil)
			synctest.Wait()
		}
		if err := <-second; err != nil {
			t.Errorf("the answer to the second: %v", err)
		}
	})
}
