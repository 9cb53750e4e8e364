package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// ledByC opens nodes a, b and c with the groups of the given ids, all led by c. The groups are by id, then by node.
func ledByC(t *testing.T, ids ...byte) (nodes map[string]*transport.Transport, groups map[byte]map[string]*transport.Group) {
	t.Helper()
	n := newPipes()
	nodes, groups = map[string]*transport.Transport{}, map[byte]map[string]*transport.Group{}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = n.node(t, name, transport.Options{})
		for _, id := range ids {
			g, err := nodes[name].Group(transport.GroupID{id})
			must(t, err)
			g.Bind(nil, raft.ServerID(name), membersOf("a", "b", "c"))
			if groups[id] == nil {
				groups[id] = map[string]*transport.Group{}
			}
			groups[id][name] = g
		}
	}
	for _, tr := range nodes {
		for _, other := range []string{"a", "b", "c"} {
			tr.SetPeer(other, other)
		}
	}
	synctest.Wait()
	for _, id := range ids {
		for _, name := range []string{"a", "b"} {
			heard(t, groups[id]["c"], groups[id][name], name, 1)
		}
	}
	return nodes, groups
}

func closeAll(nodes map[string]*transport.Transport) {
	for _, tr := range nodes {
		_ = tr.Close()
	}
}

// The groups of a node that died are not all its first survivor's: half of them the second stands for first.
func TestSurvivorsShareTheElections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, groups := ledByC(t, 0, 1)
		defer closeAll(nodes)
		began := time.Now()
		must(t, nodes["c"].Close())
		for id, first := range map[byte]string{0: "a", 1: "b"} {
			if took := stood(t, groups[id][first], began); took > 50*time.Millisecond {
				t.Errorf("node %s stands for group %d after %s", first, id, took)
			}
		}
	})
}

// As long as those that were told to stand get votes for some groups, who comes second waits with the others, too: they stand in
// the same queues. What raft's timers make of some groups says nothing of the others.
func TestWhoComesSecondWaitsWhileVotesAreGiven(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		told        bool
		least, most time.Duration
	}{
		"to who was told to stand": {true, 500 * time.Millisecond, 700 * time.Millisecond},
		"to whose timer fired":     {false, 250 * time.Millisecond, 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes, groups := ledByC(t, 0, 2)
				defer closeAll(nodes)
				began := time.Now()
				must(t, nodes["c"].Close())
				time.Sleep(200 * time.Millisecond) // a gets its vote for one group, late
				asked := make(chan error, 1)
				go func() {
					asked <- groups[0]["a"].RequestVote("b", "b", &raft.RequestVoteRequest{
						RPCHeader: raft.RPCHeader{ProtocolVersion: 3, Addr: []byte("a"), ID: []byte("a")}, Term: 2, LeadershipTransfer: x.told,
					}, &raft.RequestVoteResponse{})
				}()
				rpc := <-groups[0]["b"].Consumer()
				rpc.Respond(&raft.RequestVoteResponse{Term: 2, Granted: true}, nil)
				must(t, <-asked)
				if took := stood(t, groups[2]["b"], began); took < x.least || took > x.most {
					t.Errorf("who comes second stands after %s, want %s to %s", took, x.least, x.most)
				}
			})
		})
	}
}
