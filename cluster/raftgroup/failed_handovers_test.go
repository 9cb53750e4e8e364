package raftgroup

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestTheLeadIsNotHandedTwiceToWhoDoesNotGetOn(t *testing.T) {
	t.Parallel()
	var f failedHandOvers
	if !f.may("b", 3, 0) {
		t.Error("the first attempt is refused")
	}
	f.failed("b", 3, 10)
	for what, c := range map[string]struct {
		id        raft.ServerID
		term, has uint64
		want      bool
	}{
		"again":              {"b", 3, 9, false},
		"when it has got on": {"b", 3, 10, true},
		"in another term":    {"b", 4, 9, true},
		"to another member":  {"c", 3, 9, true},
	} {
		if got := f.may(c.id, c.term, c.has); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}
