package transport_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A pipeline of a group to which nothing is appended ends once raft has all its answers, and there is no other until
// something is.
func TestAGroupAtRestHasNoPipeline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		a, b := newPipes().pair(t, transport.Options{Silence: -1, Timeout: timeout})
		ga, gb := openGroup(t, a), openGroup(t, b)
		f := follow(t, gb, nil)
		j, logs := source(t, 10, 10)
		ga.Bind(j, "a", membersOf("a", "b", "c"))
		time.Sleep(2 * timeout)
		untold, err := ga.AppendEntriesPipeline("b", "b")
		must(t, err) // nobody tells it what is appended
		must(t, untold.Close())
		ga.Appends()
		p, err := ga.AppendEntriesPipeline("b", "b")
		must(t, err)
		defer p.Close()
		send := func(req *raft.AppendEntriesRequest) error {
			_, err := p.AppendEntries(req, &raft.AppendEntriesResponse{})
			synctest.Wait()
			return err
		}
		must(t, send(appendOf(logs[:1], 0, 0)))
		<-p.Consumer()
		must(t, send(appendOf(logs[:1], 1, 1))) // a moment after something was appended
		time.Sleep(timeout + time.Second)
		must(t, send(appendOf(logs[:1], 1, 1))) // raft has not taken the answer to the last
		<-p.Consumer()
		time.Sleep(timeout)
		<-p.Consumer()
		must(t, send(appendOf(logs, 1, 1))) // with an entry
		<-p.Consumer()
		if err := send(appendOf(logs, 2, 1)); !errors.Is(err, transport.ErrAtRest) {
			t.Errorf("a request without entries at rest: got %v", err)
		}
		if _, err := ga.AppendEntriesPipeline("b", "b"); err != raft.ErrPipelineReplicationNotSupported {
			t.Errorf("another pipeline at rest: got %v", err)
		}
		ga.Appends()
		p, err = ga.AppendEntriesPipeline("b", "b")
		must(t, err)
		must(t, p.Close())
		if got, _ := f.got(); len(got) != 3 || len(got[2].Entries) != 1 {
			t.Errorf("the follower got %+v", got)
		}
	})
}

// What is appended does not wait until the heartbeats are due with which goes what raft had to say before.
func TestWhatIsAppendedAtRestGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout, window = time.Minute, 10 * time.Second
		a, b := newPipes().pair(t, transport.Options{Silence: -1, Timeout: timeout, Window: window})
		ga, gb := openGroup(t, a), openGroup(t, b)
		f := follow(t, gb, nil)
		j, logs := source(t, 10)
		ga.Bind(j, "a", membersOf("a", "b", "c"))
		ask := func() (took time.Duration) {
			began := time.Now()
			must(t, ga.AppendEntries("b", "b", appendOf(logs, 1, 0), &raft.AppendEntriesResponse{}))
			return time.Since(began)
		}
		ga.Appends()
		must(t, ga.AppendEntries("b", "b", appendOf(logs, 0, 0), &raft.AppendEntriesResponse{}))
		const soon = window / 10 // an answer waits for others, too
		if took := ask(); took > soon {
			t.Errorf("a moment after something was appended it took %v", took)
		}
		time.Sleep(2 * timeout)
		if took := ask(); took < window || took > window+soon {
			t.Errorf("at rest it took %v, want the window of %v", took, window)
		}
		time.AfterFunc(window/2, ga.Appends)
		if took := ask(); took < window/2 || took > window/2+soon {
			t.Errorf("as something was appended after %v it took %v", window/2, took)
		}
		if _, beats := f.got(); beats != 3 {
			t.Errorf("%d requests went as heartbeats, want all three", beats)
		}
	})
}
