package storage_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// vote stores a configuration with so many voters, and a member without a vote.
func (l *log) vote(voters int) {
	l.t.Helper()
	c := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Nonvoter, ID: "n", Address: "n"}}}
	for i := range voters {
		id := fmt.Sprint(i)
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	must(l.t, l.StoreLog(&raft.Log{Index: l.last() + 1, Term: l.term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(c)}))
}

func (l *log) wantEnd(want int64) {
	l.t.Helper()
	if _, got := l.Bounds(0); got != want {
		l.t.Fatalf("%d records are shown, want %d", got, want)
	}
}

// What may be shown follows the number of voters with the entry that changes it, and what was shown stays.
func TestWhatOneVoterHasInMemoryIsNotShown(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, FlushEvery: 1 << 62})
	l.vote(3)
	l.put(0, plain("x", 2))
	l.wantEnd(2)
	l.vote(1)
	l.wantEnd(2)
	l.put(0, plain("x", 2))
	l.wantEnd(2)
	must(t, l.Flush())
	l.wantEnd(4)
	l.put(0, plain("x", 2))
	l.wantEnd(4)
	l.vote(2)
	l.Commit(l.last())
	l.wantEnd(6)
	l.put(0, plain("x", 2))
	l.wantEnd(8)
	l.vote(1) // is not committed, and cut away by another leader
	l.wantEnd(8)
	must(t, l.DeleteRange(l.last(), l.last()))
	l.put(0, plain("x", 2))
	l.wantEnd(10)
	l.vote(1)
	l.Commit(l.last())
	must(t, l.Close())
	l = openLog(t, l.dir, l.opts)
	l.put(0, plain("x", 2))
	l.wantEnd(10)
	must(t, l.Flush())
	l.wantEnd(12)
}
