package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

func configuration(servers ...raft.Server) *raft.Log {
	return &raft.Log{Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers})}
}

// The entry that takes a member's vote waits until it is known what becomes of it; what does not take it goes at once.
func TestTheEntryThatTakesAVoteWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	const long = time.Minute
	removes := []*raft.Log{{Type: raft.LogCommand}, configuration(raft.Server{ID: "a"})}
	demotes := []*raft.Log{configuration(raft.Server{ID: "a"}, raft.Server{ID: "b", Suffrage: raft.Nonvoter})}
	keeps := []*raft.Log{{Type: raft.LogCommand}, configuration(raft.Server{ID: "b"})}
	synctest.Test(t, func(t *testing.T) {
		var d transport.Departures
		must(t, d.Await("b", removes, nil, long)) // nobody goes
		for _, committed := range []bool{true, false} {
			for _, entries := range [][]*raft.Log{removes, demotes} {
				over := d.Depart("b")
				must(t, d.Await("b", nil, nil, long))
				must(t, d.Await("b", keeps, nil, long))
				must(t, d.Await("c", keeps, nil, long))
				got := make(chan error, 1)
				go func() { got <- d.Await("b", entries, nil, long) }()
				synctest.Wait()
				if len(got) > 0 {
					t.Fatal("it went before that was known")
				}
				over(committed)
				if err := <-got; (err == nil) != committed {
					t.Errorf("committed: %v, got %v", committed, err)
				}
				must(t, d.Await("b", entries, nil, long))
			}
		}
		over := d.Depart("b")
		defer over(false)
		ended := make(chan struct{})
		close(ended)
		if err := d.Await("b", removes, ended, long); err == nil {
			t.Error("it went as its group ended")
		}
		if err := d.Await("b", removes, nil, long); err == nil {
			t.Error("it went as the time was over")
		}
	})
}
