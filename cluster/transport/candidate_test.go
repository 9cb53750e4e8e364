package transport_test

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A candidate that raft would refuse as none of its voters is shown as one if its log goes further than the member's, and only
// then.
func TestACandidateIsShownAsAVoterWhereItIsAhead(t *testing.T) {
	t.Parallel()
	has := transport.Standing{Index: 10, LastTerm: 3}
	servers := []raft.Server{{ID: "a"}, {ID: "b", Suffrage: raft.Nonvoter}, {ID: "c"}}
	for _, c := range []struct {
		id          raft.ServerID
		index, term uint64
		asItself    bool
	}{
		{"new", 11, 3, false},
		{"new", 1, 4, false},
		{"new", 10, 3, true},
		{"new", 9, 3, true},
		{"new", 99, 2, true},
		{"b", 11, 3, false},
		{"b", 10, 3, true},
		{"a", 11, 3, true},
		{"a", 9, 3, true},
	} {
		got := transport.Candidate(c.id, servers, has, c.index, c.term)
		if asVoter := got == "a" || got == "c"; got == c.id != c.asItself || !c.asItself && !asVoter {
			t.Errorf("%s with a log up to %d of term %d is shown as %s; want it to be itself: %v", c.id, c.index, c.term, got, c.asItself)
		}
	}
	if got := transport.Candidate("new", servers[1:2], has, 11, 3); got != "new" {
		t.Errorf("where nobody is known to vote it is shown as %s", got)
	}
}
