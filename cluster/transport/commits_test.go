package transport_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A follower that has an entry and hears nothing more is told once that it is committed, and never of more than it has
// acknowledged.
func TestAFollowerIsToldWhatIsCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newPipes()
		a, b := n.pair(t, transport.Options{Silence: -1, Timeout: time.Minute})
		ga, gb := openGroup(t, a), openGroup(t, b)
		f := follow(t, gb, nil)
		j, logs := source(t, 10, 10, 10)
		ga.Bind(j, "a", membersOf("a", "b", "c"))
		var index atomic.Uint64
		var follows atomic.Bool
		ga.TellCommitted(func() (uint64, uint64, bool) { return index.Load(), 1, !follows.Load() })
		var resp raft.AppendEntriesResponse
		must(t, ga.AppendEntries("b", "b", appendOf(logs[:2], 0, 0), &resp))
		want := func(when string, appends int, commit uint64) {
			t.Helper()
			time.Sleep(10 * time.Second) // fake
			got, _ := f.got()
			if last := got[len(got)-1]; len(got) != appends || last.LeaderCommitIndex != commit {
				t.Errorf("%s: got %d appends, the last with commit index %d, want %d and %d", when, len(got), last.LeaderCommitIndex, appends, commit)
			}
		}
		want("before it is committed", 1, 0)
		index.Store(3)
		want("when more is committed than it has", 2, 2)
		if got, _ := f.got(); got[1].PrevLogEntry != 2 || got[1].PrevLogTerm != 1 || len(got[1].Entries) != 0 {
			t.Errorf("it was told so by %+v", got[1])
		}
		must(t, ga.AppendEntries("b", "b", appendOf(logs, 2, 3), &resp))
		want("when the entry itself says it", 3, 3)
		if got := a.Stats().Told; got != 1 {
			t.Errorf("it was told %d times, want once", got)
		}
		follows.Store(true)
		must(t, ga.AppendEntries("b", "b", appendOf(logs, 2, 2), &resp))
		want("by who does not lead", 4, 2)
	})
}

// What raft had to leave out of a request does not wait for the next entry: the pipeline ends, and raft sends the rest.
func TestAPipelineEndsBehindAFullRequest(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, gb := openGroup(t, a), openGroup(t, b)
	follow(t, gb, nil)
	sizes := make([]int, transport.MaxEntries+1)
	for i := range sizes {
		sizes[i] = 10
	}
	j, logs := source(t, sizes...)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	p, err := ga.AppendEntriesPipeline("b", "b")
	must(t, err)
	defer p.Close()
	answered := func(from, to int) raft.AppendFuture {
		t.Helper()
		_, err := p.AppendEntries(appendOf(logs[:to], from, 0), &raft.AppendEntriesResponse{})
		must(t, err)
		f := <-p.Consumer()
		if err := f.Error(); err != nil || !f.Response().Success {
			t.Fatalf("entries %d to %d: got %v, %+v", from+1, to, err, f.Response())
		}
		return f
	}
	answered(0, 1)
	select {
	case f := <-p.Consumer():
		t.Fatalf("behind a request with room left came %+v", f.Response())
	default:
	}
	answered(1, transport.MaxEntries+1)
	if f := <-p.Consumer(); f.Error() != nil || f.Response().Success {
		t.Errorf("behind a full request came %+v, want one that ends raft's pipeline", f.Response())
	}
}
