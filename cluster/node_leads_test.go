package cluster

import (
	"encoding/json"
	"testing"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// What a node says counts until it says something else, also if another node's word counted meanwhile.
func TestALeadIsHisWhoSaidItLast(t *testing.T) {
	t.Parallel()
	table := leadTable{changed: make(chan struct{}, 1)}
	key := metadata.StreamJournal{Journal: 7}
	for i, step := range []struct {
		from     string
		term     uint64 // 0: it leads nothing
		want     int32  // 0: nobody
		wantTerm uint64
		rings    bool
	}{
		{"1", 5, 1, 5, true},
		{"1", 5, 1, 5, false},
		{"2", 6, 2, 6, true},
		{"1", 5, 2, 6, false},
		{"2", 6, 2, 6, false},
		{"2", 0, 0, 0, true},
		{"1", 5, 1, 5, true}, // the same as before, and it counts now
		{"1", 5, 1, 5, false},
		{"1", 7, 1, 7, true},
		{"1", 0, 0, 0, true},
	} {
		var c leadsCall
		if step.term > 0 {
			c.Leads = []lead{{StreamJournal: key, Term: step.term, InSync: []int32{1, 2}}}
		}
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := table.heard(step.from, body); err != nil {
			t.Fatal(err)
		}
		got, _ := table.get(key)
		rang := len(table.changed) > 0
		if rang {
			<-table.changed
		}
		if got.node != step.want || got.Term != step.wantTerm || rang != step.rings {
			t.Errorf("step %d: node %d leads in term %d, rang %v; want node %d, %d, %v", i, got.node, got.Term, rang, step.want, step.wantTerm, step.rings)
		}
	}
	if err := table.heard("1", []byte("{")); err == nil {
		t.Error("half a call is understood")
	}
}
